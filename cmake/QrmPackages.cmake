# Debian packages, by `cpack -G DEB` in the build tree: qrm (qrmd and qrmctl), qrm-plugins (plugins as processes),
# qrm-scheduler, libqrm-dev (the SDK). Components beside those of QrmInstall, since packages have their own places.
set(QRM_UNIT_DIR lib/systemd/system)  # below /usr

function(qrm_package COMPONENT DIRECTORY)
  foreach(program IN LISTS ARGN)
    install(PROGRAMS $<TARGET_FILE:${program}> DESTINATION ${DIRECTORY} COMPONENT ${COMPONENT} EXCLUDE_FROM_ALL)
  endforeach()
endfunction()
qrm_package(deb-qrm sbin qrmd)
qrm_package(deb-qrm bin qrmctl)
qrm_package(deb-plugins sbin qrm-cci-driver qrm-plugin-cpu qrm-plugin-memory qrm-plugin-nic)
qrm_package(deb-scheduler sbin qrm-scheduler)
install(FILES packaging/config.yaml DESTINATION share/qrm COMPONENT deb-qrm EXCLUDE_FROM_ALL)
install(FILES packaging/systemd/qrmd.service DESTINATION ${QRM_UNIT_DIR} COMPONENT deb-qrm EXCLUDE_FROM_ALL)
install(FILES packaging/systemd/qrm-cci-driver.service packaging/systemd/qrm-plugin@.service DESTINATION ${QRM_UNIT_DIR}
  COMPONENT deb-plugins EXCLUDE_FROM_ALL)
foreach(component qrm plugins scheduler sdk)
  set(name qrm-${component})
  if(component STREQUAL qrm)
    set(name qrm)
  elseif(component STREQUAL sdk)
    set(name libqrm-dev)
  endif()
  install(FILES LICENSE DESTINATION share/doc/${name} RENAME copyright COMPONENT deb-${component} EXCLUDE_FROM_ALL)
  if(NOT component STREQUAL sdk)
    foreach(package libgrpc-dev libgrpc++-dev libabsl-dev libprotobuf-dev libre2-dev)
      install(FILES /usr/share/doc/${package}/copyright DESTINATION share/doc/${name} RENAME ${package}.copyright
        COMPONENT deb-${component} EXCLUDE_FROM_ALL OPTIONAL)
    endforeach()
  endif()
endforeach()
# qrmd and qrmctl make their own manual pages, qrmctl its completions.
install(CODE "
  set(share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share\")
  execute_process(COMMAND $<TARGET_FILE:qrmctl> man --directory \${share}/man/man1 COMMAND_ERROR_IS_FATAL ANY)
  file(MAKE_DIRECTORY \${share}/man/man8)
  execute_process(COMMAND $<TARGET_FILE:qrmd> --print-man-page OUTPUT_FILE \${share}/man/man8/qrmd.8
    COMMAND_ERROR_IS_FATAL ANY)
  file(MAKE_DIRECTORY \${share}/bash-completion/completions \${share}/zsh/vendor-completions
    \${share}/fish/vendor_completions.d)
  foreach(script bash-completion/completions/qrmctl zsh/vendor-completions/_qrmctl fish/vendor_completions.d/qrmctl.fish)
    string(REGEX MATCH \"^[a-z]*\" shell \${script})
    execute_process(COMMAND $<TARGET_FILE:qrmctl> completion \${shell} OUTPUT_FILE \${share}/\${script}
      COMMAND_ERROR_IS_FATAL ANY)
  endforeach()" COMPONENT deb-qrm EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR qrm)
set(CPACK_PACKAGE_CONTACT "qrm maintainers <maintainers@users.noreply.example>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL deb-qrm deb-plugins deb-scheduler deb-sdk sdk)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
foreach(component QRM PLUGINS SCHEDULER SDK)
  string(TOLOWER deb-${component} group)
  set(CPACK_COMPONENT_DEB-${component}_GROUP ${group})
endforeach()
set(CPACK_COMPONENT_SDK_GROUP deb-sdk)
set(CPACK_DEBIAN_DEB-QRM_PACKAGE_NAME qrm)
set(CPACK_DEBIAN_DEB-QRM_DESCRIPTION "QoS resource manager of a Kubernetes node
 qrmd places containers on CPUs, memory nodes and NICs beside an unmodified kubelet; qrmctl shows and steers it.")
set(CPACK_DEBIAN_DEB-QRM_PACKAGE_CONTROL_EXTRA
  "${PROJECT_SOURCE_DIR}/packaging/debian/postinst;${PROJECT_SOURCE_DIR}/packaging/debian/prerm;${PROJECT_SOURCE_DIR}/packaging/debian/postrm")
set(CPACK_DEBIAN_DEB-PLUGINS_PACKAGE_NAME qrm-plugins)
set(CPACK_DEBIAN_DEB-PLUGINS_DESCRIPTION "Resource plugins of qrmd as processes of their own
 cpu, memory and nic, for sites that replace them on their own schedule; qrm-cci-driver, which gives CPUs by attributes.")
set(CPACK_DEBIAN_DEB-SCHEDULER_PACKAGE_NAME qrm-scheduler)
set(CPACK_DEBIAN_DEB-SCHEDULER_DESCRIPTION "Extender of kube-scheduler for qrm
 Extended resources and NUMA nodes as a resource, for an unmodified kube-scheduler.")
set(CPACK_DEBIAN_DEB-SDK_PACKAGE_NAME libqrm-dev)
set(CPACK_DEBIAN_DEB-SDK_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEB-SDK_PACKAGE_DEPENDS
  "g++, cmake, make, pkg-config, protobuf-compiler-grpc, libgrpc++-dev, libprotobuf-dev, libabsl-dev, libboost1.81-dev, libfmt-dev, libsqlite3-dev")
set(CPACK_DEBIAN_DEB-SDK_PACKAGE_RECOMMENDS
  "libssl-dev, libyaml-cpp-dev, nlohmann-json3-dev, prometheus-cpp-dev, libhwloc-dev, libpugixml-dev")
set(CPACK_DEBIAN_DEB-SDK_DESCRIPTION "SDK for resource plugins of qrmd
 Libraries, headers, protos and qrm-plugin-check.")
include(CPack)
