# Runs an example on a model: its exit status must be 0, and a line of its output must match.
#   cmake -DPROGRAM=... -DMODEL=... -DEXPECTED=regex -P run.cmake
execute_process(COMMAND ${PROGRAM} ${MODEL} OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE status)
message("${output}${errors}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the exit status is ${status}")
endif()
if(NOT output MATCHES "${EXPECTED}")
  message(FATAL_ERROR "no line matches '${EXPECTED}'")
endif()
