@echo off
rem Windows build of both recipes: the compiler (MSVC, or clang-cl by CC and CXX) and the paths come from the activated
rem build environment; the source is src\ with patches\windows applied. Nothing is downloaded.
setlocal

rem CMake reads backslashes in these as escapes.
set "prefix=%LIBRARY_PREFIX:\=/%"
set "site=%SP_DIR:\=/%"
set "interpreter=%PYTHON:\=/%"

rem A program that crashes ends with a negative number, which `if errorlevel 1` takes for success.
cmake -S src -B build -G Ninja %CMAKE_ARGS% ^
    -DCMAKE_BUILD_TYPE=Release ^
    -DCMAKE_PREFIX_PATH="%prefix%" ^
    -DCMAKE_INSTALL_PREFIX="%prefix%" ^
    -DPython_EXECUTABLE="%interpreter%" ^
    -DPYTHON_SITE_DIR="%site%" ^
    -DTRITON_INSTALL_PYTHON=ON ^
    -DTRITON_LLVM_LINK=%llvm_link%
if %ERRORLEVEL% neq 0 exit /b 1
cmake --build build --parallel %CPU_COUNT%
if %ERRORLEVEL% neq 0 exit /b 1
cmake --install build --strip
if %ERRORLEVEL% neq 0 exit /b 1
