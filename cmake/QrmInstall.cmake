# What `cmake --install` puts where. Component "sdk" is all that a plugin's author needs: libraries, headers, protos and
# the package that find_package(qrm) finds.
include(CMakePackageConfigHelpers)

set(QRM_INCLUDE_DIR ${CMAKE_INSTALL_INCLUDEDIR}/qrm)
set(QRM_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/qrm)

set(QRM_SDK_LIBRARIES qrm_base qrm_api qrm_messages qrm_rpc qrm_services qrm_wire qrm_sqlite qrm_plugin qrm_plugin_driver
  qrm_plugin_calls qrm_sdk qrm_fake_manager)
# For extensions of the scheduler, in targets of their own: they need more packages.
set(QRM_SCHEDULER_LIBRARIES qrm_json qrm_section qrm_https_url qrm_https_call qrm_http_address qrm_http_server qrm_cluster
  qrm_scheduler_cache qrm_scheduler_feed qrm_scheduler_extender)
# For extensions that judge by qrm's own resources, too, such as NUMA nodes.
set(QRM_RESOURCE_LIBRARIES qrm_topology qrm_checkpoint qrm_rules qrm_plugin_config qrm_kernel_files qrm_kernel_values qrm_tuning
  qrm_plugin_cpu_config qrm_plugin_cpu_sizing qrm_plugin_cpu_advisor qrm_plugin_cpu qrm_plugin_memory qrm_plugin_nic
  qrm_admission_options qrm_placement_requests qrm_placement qrm_scheduler_topology)
add_custom_target(sdk DEPENDS ${QRM_SDK_LIBRARIES} ${QRM_SCHEDULER_LIBRARIES} ${QRM_RESOURCE_LIBRARIES} qrm-plugin-check)
install(TARGETS ${QRM_SDK_LIBRARIES}
  EXPORT qrmTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sdk
  INCLUDES DESTINATION ${QRM_INCLUDE_DIR})
install(TARGETS ${QRM_SCHEDULER_LIBRARIES}
  EXPORT qrmSchedulerTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sdk
  INCLUDES DESTINATION ${QRM_INCLUDE_DIR})
install(TARGETS ${QRM_RESOURCE_LIBRARIES}
  EXPORT qrmResourceTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sdk
  INCLUDES DESTINATION ${QRM_INCLUDE_DIR})
install(EXPORT qrmResourceTargets NAMESPACE qrm:: DESTINATION ${QRM_PACKAGE_DIR} COMPONENT sdk)
install(EXPORT qrmSchedulerTargets NAMESPACE qrm:: DESTINATION ${QRM_PACKAGE_DIR} COMPONENT sdk)
install(TARGETS qrm-plugin-check RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT sdk)
install(EXPORT qrmTargets NAMESPACE qrm:: DESTINATION ${QRM_PACKAGE_DIR} COMPONENT sdk)

install(FILES api/hint.h api/id_set.h api/pod_container.h api/quantity.h api/resource.h DESTINATION ${QRM_INCLUDE_DIR}/api COMPONENT sdk)
install(FILES api/base/cgroup.h api/base/errorf.h api/base/foreign_yaml.h api/base/log.h api/base/log_level.h api/base/mutex.h api/base/section.h api/base/shared.h api/base/shared_text.h api/base/status.h
  DESTINATION ${QRM_INCLUDE_DIR}/api/base COMPONENT sdk)
install(FILES plugins/sdk/class_plugin.h plugins/sdk/class_provider.h plugins/sdk/compute_driver.h plugins/sdk/fake_manager.h plugins/sdk/host.h plugins/sdk/plugin.h plugins/sdk/plugin_state.h
    plugins/sdk/resource_plugin.h plugins/sdk/running_plugin.h
  DESTINATION ${QRM_INCLUDE_DIR}/plugins/sdk COMPONENT sdk)
install(FILES scheduler/cache/annotation_keys.h scheduler/cache/extended_cache.h scheduler/cache/extended_resource.h scheduler/cache/feed.h
    scheduler/cache/handle.h scheduler/cache/handle_guard.h scheduler/cache/objects.h scheduler/cache/read_objects.h scheduler/cache/snapshot.h
  DESTINATION ${QRM_INCLUDE_DIR}/scheduler/cache COMPONENT sdk)
install(FILES scheduler/topology/resource_types.h DESTINATION ${QRM_INCLUDE_DIR}/scheduler/topology COMPONENT sdk)
install(FILES scheduler/extender/scheduler_main.h DESTINATION ${QRM_INCLUDE_DIR}/scheduler/extender COMPONENT sdk)
foreach(proto resourceplugin/v1alpha1/api.proto pluginregistration/v1/api.proto qrm/v1/control.proto qrm/v1/class_plugin.proto qrm/v1/plugin_changes.proto cci/v1alpha1/cci.proto)
  cmake_path(GET proto PARENT_PATH folder)
  install(FILES api/proto/${proto} DESTINATION ${CMAKE_INSTALL_DATADIR}/qrm/proto/${folder} COMPONENT sdk)
endforeach()

list(TRANSFORM QRM_SDK_LIBRARIES PREPEND -l OUTPUT_VARIABLE QRM_PC_LIBS)
list(JOIN QRM_PC_LIBS " " QRM_PC_LIBS)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
  OUTPUT_VARIABLE QRM_PC_INCLUDES)
configure_file(cmake/qrm.pc.in qrm.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/qrm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT sdk)

configure_package_config_file(cmake/qrmConfig.cmake.in ${PROJECT_BINARY_DIR}/qrmConfig.cmake
  INSTALL_DESTINATION ${QRM_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/qrmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/qrmConfig.cmake ${PROJECT_BINARY_DIR}/qrmConfigVersion.cmake
  DESTINATION ${QRM_PACKAGE_DIR} COMPONENT sdk)
