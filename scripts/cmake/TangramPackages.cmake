# `cpack` writes Debian packages: tangram (the program) and libtangram-dev (to build against it). Dependencies of the
# program are those of the libraries that it is linked with, as dpkg-shlibdeps finds them.
set(TANGRAM_MAINTAINER "Tangram maintainers <maintainers@tangram.example>" CACHE STRING
    "Who the packages name as their maintainer: a distributor gives an address that is read")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tangram)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "planner of LLM training on mixed GPU fleets")
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${TANGRAM_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME tangram)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
# The module tangram, the plug-in SDK, its adapters and share/tangram/scripts are Python; workers elsewhere start through srun or mpirun.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS python3)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "bash-completion, openmpi-bin, slurm-client")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
"Given a fleet of GPUs and a training job, tangram decides which GPUs form which
pipeline stage, how many layers each stage holds and how each stage is
parallelized inside. It predicts time, memory and cost, says how far the plan
can be from the best possible, and writes a launch plan that it can check,
simulate, execute on a small model and export to Megatron-LM, FlagScale, Slurm
and Kubernetes.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtangram-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libeigen3-dev, libexpat1-dev, libexpected-dev, libfmt-dev, libsqlite3-dev, libtbb-dev, libyaml-cpp-dev, nlohmann-json3-dev")
if(TANGRAM_HWLOC_INCLUDE AND TANGRAM_HWLOC_LIBRARY)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libhwloc-dev")
endif()
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
"Headers, static libraries and the CMake package, find_package(tangram), of the
planner, for programs that plan without starting another one.")

# Debian wants its licence statement beside the documentation of each package.
foreach(component IN ITEMS runtime development)
  string(TOUPPER "${component}" upper)
  install(FILES scripts/package/copyright DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}"
          COMPONENT "${component}" EXCLUDE_FROM_ALL) # from `cmake --install` without a component
endforeach()

include(CPack)
