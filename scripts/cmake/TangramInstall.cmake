# What `cmake --install` puts where, in two components: runtime (the program, its manual, completions and data) and
# development (headers, static libraries and the CMake package). The modules install themselves (tangram_module).
include(CMakePackageConfigHelpers)

set(data "${CMAKE_INSTALL_DATADIR}/tangram")
set(documents "${PROJECT_BINARY_DIR}/documents")
file(MAKE_DIRECTORY "${documents}")

install(TARGETS tangram RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime)
install(FILES LICENSE README.md .github/CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT runtime)

# The manual and the completions are what the program prints of itself.
find_program(TANGRAM_GZIP gzip)
set(document_files "")

# tangram_document(FILE ARGUMENTS...): FILE of the documents is what `tangram ARGUMENTS` prints.
function(tangram_document file)
  list(JOIN ARGN "|" arguments)
  add_custom_command(
    OUTPUT "${documents}/${file}"
    COMMAND "${CMAKE_COMMAND}" -DPROGRAM=$<TARGET_FILE:tangram> "-DARGUMENTS=${arguments}" "-DOUTPUT=${documents}/${file}"
            -P "${PROJECT_SOURCE_DIR}/scripts/cmake/WriteOutput.cmake"
    DEPENDS tangram "${PROJECT_SOURCE_DIR}/scripts/cmake/WriteOutput.cmake"
    COMMENT "Writing ${file}"
    VERBATIM)
  set(document_files ${document_files} "${documents}/${file}" PARENT_SCOPE)
endfunction()

# tangram_manual_page(NAME SECTION ARGUMENTS...): `man SECTION NAME` is what `tangram ARGUMENTS` prints.
function(tangram_manual_page name section)
  set(page "${name}.${section}")
  tangram_document("${page}" ${ARGN})
  set(written "${documents}/${page}")
  if(TANGRAM_GZIP)
    add_custom_command(
      OUTPUT "${written}.gz"
      COMMAND "${TANGRAM_GZIP}" -9nkf "${written}" # without name and time: the same bytes again
      DEPENDS "${written}"
      VERBATIM)
    set(written "${written}.gz")
  endif()
  install(FILES "${written}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}" COMPONENT runtime)
  set(document_files ${document_files} "${written}" PARENT_SCOPE)
endfunction()

tangram_manual_page(tangram 1 manual)
get_property(manual_topics GLOBAL PROPERTY TANGRAM_MANUAL_TOPICS)
foreach(topic IN LISTS manual_topics)
  tangram_manual_page(tangram-${topic} 7 manual ${topic})
endforeach()
tangram_document(tangram completion bash)
tangram_document(_tangram completion zsh)
tangram_document(tangram.fish completion fish)
add_custom_target(tangram_documents ALL DEPENDS ${document_files})

install(FILES "${documents}/tangram" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT runtime)
install(FILES "${documents}/tangram.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" COMPONENT runtime)
# zsh of Debian looks into site-functions under /usr/local, and into vendor-completions under /usr.
install(CODE "
  set(folder site-functions)
  if(EXISTS /etc/debian_version AND CMAKE_INSTALL_PREFIX MATCHES \"/usr/?$\")
    set(folder vendor-completions)
  endif()
  file(INSTALL \"${documents}/_tangram\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/zsh/\${folder}\")
" COMPONENT runtime)

# Data. The program finds it beside itself: ../share/tangram.
install(DIRECTORY configs/clusters configs/models configs/gpus configs/schemas configs/profiles configs/timings configs/measurements configs/kernels configs/ci
        DESTINATION "${data}" COMPONENT runtime)
install(DIRECTORY scripts/plugin_sdk DESTINATION "${data}" COMPONENT runtime USE_SOURCE_PERMISSIONS
        PATTERN __pycache__ EXCLUDE)
install(PROGRAMS scripts/replan.py scripts/sweep.py scripts/profile_gpu.py scripts/measure_operators.py scripts/record_kernels.py
        DESTINATION "${data}/scripts" COMPONENT runtime)
# `import tangram`: under /usr where the python3 of Debian looks, elsewhere for PYTHONPATH.
install(FILES apps/python/tangram.py DESTINATION lib/python3/dist-packages COMPONENT runtime)
# In the source tree the adapters are in scripts; installed they are beside the manifests.
file(GLOB manifests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/configs/parallelizers/*.yaml")
foreach(manifest IN LISTS manifests)
  get_filename_component(name "${manifest}" NAME)
  file(READ "${manifest}" text)
  string(REPLACE "../../scripts/plugin_sdk/" "../plugin_sdk/" text "${text}")
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/parallelizers/${name}" CONTENT "${text}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${manifest}")
  install(FILES "${PROJECT_BINARY_DIR}/parallelizers/${name}" DESTINATION "${data}/parallelizers" COMPONENT runtime)
endforeach()

# The CMake package: find_package(tangram) gives a target tangram::MODULE for each module.
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/tangram")
set_target_properties(tangram_options PROPERTIES EXPORT_NAME options)
install(TARGETS tangram_options EXPORT tangram)
install(EXPORT tangram NAMESPACE tangram:: FILE tangramTargets.cmake DESTINATION "${package}" COMPONENT development)
configure_package_config_file(scripts/cmake/tangramConfig.cmake.in "${PROJECT_BINARY_DIR}/tangramConfig.cmake"
  INSTALL_DESTINATION "${package}")
# Before 1.0 a minor version may change what there is.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tangramConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tangramConfig.cmake" "${PROJECT_BINARY_DIR}/tangramConfigVersion.cmake"
        DESTINATION "${package}" COMPONENT development)
install(DIRECTORY include/tangram DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
