# Installs the library from the build BUILD, builds the project CONSUMER with what is there, and runs it on MODEL.
#   cmake -DBUILD=... -DCONSUMER=... -DWORK=... -DCOMPILER=... -DGENERATOR=... -DMODEL=... -P run.cmake
function(must)
  execute_process(COMMAND ${ARGV} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  message("${output}")
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "'${command}' ends with ${status}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK}/prefix ${WORK}/consumer)
must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --component library)
must(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/consumer -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
     -DCMAKE_PREFIX_PATH=${WORK}/prefix)
must(${CMAKE_COMMAND} --build ${WORK}/consumer)
must(${WORK}/consumer/consumer ${MODEL})
if(NOT output MATCHES "drew 4 tokens, the history has 7")
  message(FATAL_ERROR "the consumer says something else")
endif()
