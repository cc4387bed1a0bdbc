/* Runs a model with one input on zeros, and prints what comes out:
 *   cc run_model.c $(pkg-config --cflags --libs millrace) -o run_model && ./run_model model.onnx */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call) \
  if ((call) != MILLRACE_OK) return fprintf(stderr, "error: %s\n", millrace_error_message()), 1

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: %s MODEL\n", argv[0]), 2;
  millrace_session* session;
  CHECK(millrace_load(argv[1], NULL, &session));
  millrace_value value;
  CHECK(millrace_input(session, 0, &value));

  millrace_tensor input = {.dtype = value.dtype, .rank = value.rank};
  size_t elements = 1;
  for (int d = 0; d < value.rank; ++d) /* one sample: 1 for every dimension that may have any size */
    elements *= input.dims[d] = value.dims[d] < 0 ? 1 : value.dims[d];
  input.data = calloc(elements, sizeof(double)); /* room enough for elements of any type */

  int count = millrace_output_count(session);
  millrace_tensor* outputs = calloc(count, sizeof *outputs); /* no `data`: the memory is to be the session's */
  CHECK(millrace_run(session, &input, 1, outputs, count));
  for (int i = 0; i < count; ++i) {
    CHECK(millrace_output(session, i, &value));
    printf("%s: %s [", value.name, millrace_dtype_name(outputs[i].dtype));
    for (int d = 0; d < outputs[i].rank; ++d) printf("%s%lld", d ? ", " : "", (long long)outputs[i].dims[d]);
    printf("]\n");
  }
  millrace_release(outputs, count);
  free(outputs);
  free(input.data);
  millrace_free(session);
  return 0;
}
