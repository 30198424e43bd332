# Compiler settings shared by every target, and the two functions that declare a module and a test.
include(GNUInstallDirs)

add_library(tangram_options INTERFACE)
target_compile_features(tangram_options INTERFACE cxx_std_20)
target_include_directories(tangram_options INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
# -ffp-contract=off: a fused multiply-add would make results depend on the compiler.
target_compile_options(tangram_options INTERFACE $<BUILD_INTERFACE:-ffp-contract=off>)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# -O3 of GCC 12 reports false -Wrestrict errors on std::string; -O2 does not.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(tangram_warnings INTERFACE)
target_compile_options(tangram_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Wcast-align -Woverloaded-virtual -Wdouble-promotion -Wformat=2 -Wunused $<$<BOOL:${TANGRAM_WERROR}>:-Werror>)
# GCC 13 and later take copies of vectors of one element for accesses beyond their end: a warning, never an error.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  target_compile_options(tangram_warnings INTERFACE -Wno-error=array-bounds)
endif()

if(TANGRAM_ASSERTIONS)
  target_compile_definitions(tangram_options INTERFACE
    $<BUILD_INTERFACE:TANGRAM_ASSERTIONS> $<BUILD_INTERFACE:_GLIBCXX_ASSERTIONS>)
endif()
if(TANGRAM_SANITIZE)
  target_compile_options(tangram_options INTERFACE -fsanitize=${TANGRAM_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(tangram_options INTERFACE -fsanitize=${TANGRAM_SANITIZE})
endif()
if(TANGRAM_COVERAGE)
  # Threads count too: without atomic updates gcov's counters go wrong, even negative.
  target_compile_options(tangram_options INTERFACE --coverage -O0 -fprofile-update=atomic)
  target_link_options(tangram_options INTERFACE --coverage)
endif()

find_program(TANGRAM_CCACHE ccache)
if(TANGRAM_CCACHE AND NOT TANGRAM_COVERAGE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${TANGRAM_CCACHE}")
endif()

# tangram_compile_quickly(target level): for what takes longer to compile than to run. Not optimized under sanitizers, and
# as little as `level` says where TANGRAM_COMPILE_QUICKLY asks for it.
function(tangram_compile_quickly target level)
  if(TANGRAM_COMPILE_QUICKLY)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
  endif()
  if(TANGRAM_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

add_custom_target(tangram_libraries) # every module, as the package has them

# tangram_module(name [QUICK] SOURCES a.cpp ... PUBLIC targets PRIVATE targets): the static library tangram_<name>, which
# is tangram::<name> here and for who finds the package. PUBLIC names what its headers need, PRIVATE what only its sources
# need. QUICK: nothing in it runs for long.
function(tangram_module name)
  cmake_parse_arguments(ARG "QUICK" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(tangram_${name} STATIC ${ARG_SOURCES})
  add_library(tangram::${name} ALIAS tangram_${name})
  set_target_properties(tangram_${name} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(tangram_${name} PUBLIC tangram_options ${ARG_PUBLIC}
    PRIVATE $<BUILD_INTERFACE:tangram_warnings> ${ARG_PRIVATE})
  add_dependencies(tangram_libraries tangram_${name})
  install(TARGETS tangram_${name} EXPORT tangram ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
  if(ARG_QUICK)
    tangram_compile_quickly(tangram_${name} -O1)
  endif()
endfunction()

# tangram_test(name [QUICK] LABEL unit SOURCES a.cpp ... LIBS targets): a Catch2 binary whose cases become ctest cases.
# QUICK: what takes its time is in the modules; so it is with all tests of units, which are optimized little. Where
# TANGRAM_COMPILE_QUICKLY asks for it, those are not optimized and all others little.
function(tangram_test name)
  cmake_parse_arguments(ARG "QUICK" "LABEL;TIMEOUT" "SOURCES;LIBS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} tangram_options tangram_warnings Catch2::Catch2WithMain)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(${name} PRIVATE TANGRAM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(ARG_QUICK OR ARG_LABEL STREQUAL "unit")
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    tangram_compile_quickly(${name} -O0)
  elseif(TANGRAM_COMPILE_QUICKLY)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  # Begun before the short ones, behind the longest of those that run the program (tests/CMakeLists.txt).
  set(cost 50)
  if(ARG_LABEL STREQUAL "unit")
    set(cost 1)
  endif()
  catch_discover_tests(${name} TEST_PREFIX "${name}: "
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} COST ${cost})
endfunction()
