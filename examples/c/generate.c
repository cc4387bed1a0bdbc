/* Goes on with tokens by the most probable ones, and prints their ids:
 *   cc generate.c $(pkg-config --cflags --libs millrace) -o generate && ./generate gpt2.onnx 464 3290 */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call) \
  if ((call) != MILLRACE_OK) return fprintf(stderr, "error: %s\n", millrace_error_message()), 1

int main(int argc, char** argv) {
  if (argc < 3) return fprintf(stderr, "usage: %s MODEL TOKEN...\n", argv[0]), 2;
  millrace_decoder* decoder;
  CHECK(millrace_decoder_load(argv[1], NULL, &decoder));
  millrace_decoder_size sizes;
  CHECK(millrace_decoder_sizes(decoder, &sizes));

  int32_t* tokens = malloc(argc * sizeof *tokens);
  float* logits = malloc(sizes.vocabulary * sizeof *logits);
  millrace_new_tokens row = {.row = 0, .tokens = tokens, .count = argc - 2};
  for (int i = 2; i < argc; ++i) tokens[i - 2] = atoi(argv[i]);
  for (int i = 0; i < 20; ++i, row.count = 1) {
    CHECK(millrace_decoder_step(decoder, &row, 1, logits));
    CHECK(millrace_sample(logits, sizes.vocabulary, NULL, 0, NULL, 0, i, tokens));
    printf("%d\n", (int)tokens[0]);
  }
  free(logits);
  free(tokens);
  millrace_decoder_free(decoder);
  return 0;
}
