/* Millrace from C, and from whatever calls C: load a model, ask what it takes, run it.
 *
 *   millrace_session* session;
 *   if (millrace_load("model.onnx", NULL, &session)) return puts(millrace_error_message());
 *
 * examples/c/run_model.c is a whole program; docs/run.md says more. This is the session of C++
 * (millrace/session.h): one may be run by any number of threads at the same time. Models of the next token
 * have a decoder as well, below; examples/c/generate.c goes on with tokens.
 *
 * What stays as it is. Functions, structs and numbers here keep their meaning within a major version of
 * millrace_api_version(); functions and numbers may be added, and fields behind those of a struct that begins
 * with its size. No exception and no signal crosses this interface. Nothing given is kept after a call
 * returns, but for what millrace_load() says.
 */
#ifndef MILLRACE_MILLRACE_H_
#define MILLRACE_MILLRACE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MILLRACE_API __attribute__((visibility("default")))
#else
#define MILLRACE_API
#endif

#define MILLRACE_API_VERSION 1 /* major; what millrace_api_version() gave when this header was written */
#define MILLRACE_MOST_DIMS 16  /* of a tensor that goes in or comes out */

/* What a function returns. Codes may be added. */
typedef int32_t millrace_status;
enum {
  MILLRACE_OK = 0,
  MILLRACE_BAD_ARGUMENT = 1, /* the call itself: a null pointer, an index out of range, a short buffer */
  MILLRACE_INPUT_ERROR = 2,  /* the file, or the sizes asked for, are nothing that the model can have */
  MILLRACE_TYPE_ERROR = 3,   /* tensors are not those that the model takes */
  MILLRACE_IO_ERROR = 4,     /* a file could not be read */
  MILLRACE_NO_MEMORY = 5,
  MILLRACE_INTERNAL_ERROR = 6 /* a defect of Millrace */
};

/* Types of elements: kind times 256 plus bits. Booleans and numbers of less than 8 bits take a byte each.
 * Kinds: 1 boolean, 2 unsigned, 3 signed, 4 float, 5 bfloat; 6 to 11 floats of 8 and 4 bits (e4m3fn,
 * e4m3fnuz, e5m2, e5m2fnuz, e8m0, e2m1). The usual ones have names here. */
#define MILLRACE_DTYPE(kind, bits) ((kind)*256 + (bits))
enum {
  MILLRACE_BOOL = MILLRACE_DTYPE(1, 1),
  MILLRACE_U8 = MILLRACE_DTYPE(2, 8),
  MILLRACE_U16 = MILLRACE_DTYPE(2, 16),
  MILLRACE_U32 = MILLRACE_DTYPE(2, 32),
  MILLRACE_U64 = MILLRACE_DTYPE(2, 64),
  MILLRACE_I8 = MILLRACE_DTYPE(3, 8),
  MILLRACE_I16 = MILLRACE_DTYPE(3, 16),
  MILLRACE_I32 = MILLRACE_DTYPE(3, 32),
  MILLRACE_I64 = MILLRACE_DTYPE(3, 64),
  MILLRACE_F16 = MILLRACE_DTYPE(4, 16),
  MILLRACE_F32 = MILLRACE_DTYPE(4, 32),
  MILLRACE_F64 = MILLRACE_DTYPE(4, 64),
  MILLRACE_BF16 = MILLRACE_DTYPE(5, 16)
};

/* A loaded model. */
typedef struct millrace_session millrace_session;

/* How to load. Zero is the default everywhere; `size` is sizeof(millrace_options). */
typedef struct millrace_options {
  size_t size;
  const char* precision; /* "fp32", "bf16" or "fp16"; NULL: the model's own */
  int32_t executables;   /* most sets of sizes that stay compiled; 0: some hundred */
} millrace_options;

/* An input or output of a model; the pointers live as long as the session. */
typedef struct millrace_value {
  const char* name;
  int32_t dtype;
  int32_t rank;
  const int64_t* dims;          /* -1 where any size may be given */
  const char* const* dim_names; /* "batch", "2*length" there; NULL where the size is fixed */
} millrace_value;

/* A dense array, row-major, in the machine's byte order. */
typedef struct millrace_tensor {
  void* data;
  int64_t capacity; /* of a result: bytes that `data` has room for; not looked at elsewhere, never changed */
  void* owner;      /* of a result: what millrace_release() frees; NULL when the memory is the caller's */
  int32_t dtype;
  int32_t rank;
  int64_t dims[MILLRACE_MOST_DIMS];
} millrace_tensor;

/* "0.1.0" */
MILLRACE_API const char* millrace_version(void);
/* MILLRACE_API_VERSION of the library that runs. */
MILLRACE_API int32_t millrace_api_version(void);
/* Of the last call of this thread that failed: what is wrong, where, and what to do. Until the next one. */
MILLRACE_API const char* millrace_error_message(void);
/* "f32"; NULL for a number that is no dtype. */
MILLRACE_API const char* millrace_dtype_name(int32_t dtype);

/* Loads a run folder, an .onnx file or whatever else Millrace knows as a model; options may be NULL. What the
 * file says may be mapped rather than read: it is not to be written to while the session lives. */
MILLRACE_API millrace_status millrace_load(const char* path, const millrace_options* options,
                                           millrace_session** session);
/* Gives the memory back; runs that have not returned must be awaited first. NULL is fine. */
MILLRACE_API void millrace_free(millrace_session* session);

MILLRACE_API int32_t millrace_input_count(const millrace_session* session);
MILLRACE_API int32_t millrace_output_count(const millrace_session* session);
MILLRACE_API millrace_status millrace_input(const millrace_session* session, int32_t index,
                                            millrace_value* value);
MILLRACE_API millrace_status millrace_output(const millrace_session* session, int32_t index,
                                             millrace_value* value);

/* The axis of an output along which how large it is depends on the data (what a detector finds), so that it
 * may be another size in each run; -1: none, or no such output. */
MILLRACE_API int32_t millrace_data_axis(const millrace_session* session, int32_t output);

/* Compiles for these sizes of named dimensions, so that the first run of such does not have to. */
MILLRACE_API millrace_status millrace_prepare(const millrace_session* session, const char* const* names,
                                              const int64_t* sizes, int32_t count);

/* Runs the model on inputs in their order: data, dtype, rank and dims are read, the data where they lie. Sets
 * dtype, rank and dims of each output. One whose `data` is NULL gets memory of the session's, which
 * millrace_release() frees; else the result is written there, and `capacity` says how much fits. Of results
 * whose size depends on data this is looked at when that is known, after the run. Outputs may share memory
 * with inputs, not with each other. After an error outputs hold nothing, and nothing is to be released. */
MILLRACE_API millrace_status millrace_run(const millrace_session* session, const millrace_tensor* inputs,
                                          int32_t input_count, millrace_tensor* outputs,
                                          int32_t output_count);
/* Frees what millrace_run() gave these outputs; their `data` is NULL then. Outputs in the caller's memory are
 * left alone. */
MILLRACE_API void millrace_release(millrace_tensor* outputs, int32_t count);

/* Sequences of tokens that grow, of which a model tells what comes next (millrace/decoder.h). Keys and values
 * of earlier tokens are kept, so a step computes new tokens alone. One thread at a time may use it. */
typedef struct millrace_decoder millrace_decoder;

/* How to load; `size` is sizeof(millrace_decoder_options). */
typedef struct millrace_decoder_options {
  size_t size;
  const char* precision; /* "fp32" or "bf16"; NULL: the model's own */
  int64_t rows;          /* most sequences at a time; 0: one */
  int64_t longest;       /* most tokens of a sequence; 0: the model's, of an ONNX file 1,024 at most */
  int64_t memory;        /* bytes for keys and values; 0: for all rows at their longest */
} millrace_decoder_options;

typedef struct millrace_decoder_size {
  int64_t rows, longest;
  int64_t capacity;   /* most tokens of all rows together, each row's counted in whole pages of 16 */
  int64_t vocabulary; /* ids are below */
} millrace_decoder_size;

/* What a sequence goes on with. */
typedef struct millrace_new_tokens {
  int64_t row; /* from 0 on */
  const int32_t* tokens;
  int64_t count;
} millrace_new_tokens;

/* How the next token is chosen, in this order: repetition, temperature, top_k, top_p. Zero is the default
 * everywhere; `size` is sizeof(millrace_sample_options). */
typedef struct millrace_sample_options {
  size_t size;
  double temperature; /* logits are divided by it; 0: the most probable token, always */
  int64_t top_k;      /* among so many of the most probable; 0: all */
  double top_p;       /* among the fewest that have this probability together; 0: all */
  double repetition;  /* logits of tokens that were there are divided by it (multiplied where negative) */
  uint64_t seed;
} millrace_sample_options;

/* Loads a run folder or an .onnx file of a model of the next token; options may be NULL. */
MILLRACE_API millrace_status millrace_decoder_load(const char* path, const millrace_decoder_options* options,
                                                   millrace_decoder** decoder);
/* NULL is fine. */
MILLRACE_API void millrace_decoder_free(millrace_decoder* decoder);
MILLRACE_API millrace_status millrace_decoder_sizes(const millrace_decoder* decoder,
                                                    millrace_decoder_size* sizes);
/* Appends tokens to some rows, each named once and by one token at least; writes `count` times `vocabulary`
 * logits of what may come behind the last one of each. After an error nothing is changed. */
MILLRACE_API millrace_status millrace_decoder_step(millrace_decoder* decoder, const millrace_new_tokens* rows,
                                                   int32_t count, float* logits);
/* The tokens that a row has. */
MILLRACE_API millrace_status millrace_decoder_length(const millrace_decoder* decoder, int64_t row,
                                                     int64_t* length);
/* Forgets a row's tokens, so that another sequence may begin there. */
MILLRACE_API millrace_status millrace_decoder_clear(millrace_decoder* decoder, int64_t row);
/* One token id by logits; options may be NULL. `before`: the tokens that count as repeated. The random number
 * is that of (seed, stream, place), so it depends on no other row. */
MILLRACE_API millrace_status millrace_sample(const float* logits, int64_t vocabulary, const int32_t* before,
                                             int64_t count, const millrace_sample_options* options,
                                             uint64_t stream, uint64_t place, int32_t* token);

#ifdef __cplusplus
}
#endif

#endif /* MILLRACE_MILLRACE_H_ */
