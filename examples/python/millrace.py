"""Millrace from Python: numpy arrays in, numpy arrays out, by ctypes and <millrace/millrace.h>.

    import millrace, numpy
    session = millrace.Session("model.onnx")
    logits = session.run(numpy.zeros((1, 3, 224, 224), numpy.float32))[0]

The library is libmillrace.so, found as the linker finds it, or named by MILLRACE_LIBRARY. Copy this file
where you need it. Arrays that are C-contiguous and of the model's dtype are read where they lie, results are
written where numpy keeps them: nothing is copied, but for the few kilobytes of calls that `run` has seen
before, where that is faster. A session may be run by many threads; the interpreter is free meanwhile.
"""
import ctypes
import operator
import os

import numpy

MOST_DIMS = 16
DTYPES = {1 * 256 + 1: "bool", 2 * 256 + 8: "uint8", 3 * 256 + 8: "int8", 3 * 256 + 32: "int32", 3 * 256 + 64: "int64",
          # The last one is bf16, as its bits.
          2 * 256 + 16: "uint16", 2 * 256 + 32: "uint32", 2 * 256 + 64: "uint64", 3 * 256 + 16: "int16", 4 * 256 + 16: "float16", 4 * 256 + 32: "float32", 4 * 256 + 64: "float64", 5 * 256 + 16: "uint16"}
# Numbers of fewer bits, and floats of 8 and 4 bits, as theirs.
DTYPES |= {kind * 256 + bits: "int8" if kind == 3 else "uint8" for kind, bits in [(2, 2), (2, 4), (3, 2), (3, 4), *[(k, 8) for k in range(6, 11)], (11, 4)]}
DTYPES = {code: numpy.dtype(name) for code, name in DTYPES.items()}


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("precision", ctypes.c_char_p), ("executables", ctypes.c_int32)]


class Value(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("dims", ctypes.POINTER(ctypes.c_int64)),
                ("dim_names", ctypes.POINTER(ctypes.c_char_p))]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("capacity", ctypes.c_int64), ("owner", ctypes.c_void_p), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * MOST_DIMS)]


class DecoderOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("precision", ctypes.c_char_p), ("rows", ctypes.c_int64), ("longest", ctypes.c_int64), ("memory", ctypes.c_int64)]


class DecoderSize(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_int64), ("longest", ctypes.c_int64), ("capacity", ctypes.c_int64), ("vocabulary", ctypes.c_int64)]


class NewTokens(ctypes.Structure):
    _fields_ = [("row", ctypes.c_int64), ("tokens", ctypes.c_void_p), ("count", ctypes.c_int64)]


class SampleOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("temperature", ctypes.c_double), ("top_k", ctypes.c_int64), ("top_p", ctypes.c_double), ("repetition", ctypes.c_double),
                ("seed", ctypes.c_uint64)]


library = ctypes.CDLL(os.environ.get("MILLRACE_LIBRARY", "libmillrace.so"))
library.millrace_error_message.restype = library.millrace_version.restype = ctypes.c_char_p
library.millrace_load.argtypes = [ctypes.c_char_p, ctypes.POINTER(Options), ctypes.POINTER(ctypes.c_void_p)]
library.millrace_free.argtypes = [ctypes.c_void_p]
library.millrace_input_count.argtypes = library.millrace_output_count.argtypes = [ctypes.c_void_p]
library.millrace_input.argtypes = library.millrace_output.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(Value)]
library.millrace_data_axis.argtypes = [ctypes.c_void_p, ctypes.c_int32]
library.millrace_prepare.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_int64), ctypes.c_int32]
library.millrace_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32]
library.millrace_release.argtypes = [ctypes.c_void_p, ctypes.c_int32]
library.millrace_decoder_load.argtypes = [ctypes.c_char_p, ctypes.POINTER(DecoderOptions), ctypes.POINTER(ctypes.c_void_p)]
library.millrace_decoder_free.argtypes = [ctypes.c_void_p]
library.millrace_decoder_sizes.argtypes = [ctypes.c_void_p, ctypes.POINTER(DecoderSize)]
library.millrace_decoder_step.argtypes = [ctypes.c_void_p, ctypes.POINTER(NewTokens), ctypes.c_int32, ctypes.c_void_p]
library.millrace_decoder_length.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)]
library.millrace_decoder_clear.argtypes = [ctypes.c_void_p, ctypes.c_int64]
library.millrace_sample.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(SampleOptions), ctypes.c_uint64, ctypes.c_uint64, ctypes.POINTER(ctypes.c_int32)]


class Error(RuntimeError):
    pass


def _check(status):
    if status:
        raise Error(library.millrace_error_message().decode())


class Port:
    """An input or output: name, dtype, and shape, whose dimensions are numbers or names."""

    def __init__(self, value):
        self.name, self.code, self.dtype = value.name.decode(), value.dtype, DTYPES[value.dtype]
        self.shape = tuple(value.dim_names[d].decode() if value.dims[d] < 0 else value.dims[d] for d in range(value.rank))

    def __repr__(self):
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


class Result:
    """The memory of a result, for as long as an array stands in it."""

    def __init__(self, tensor):
        self.tensor = Tensor.from_buffer_copy(tensor)
        shape = tuple(tensor.dims[: tensor.rank])
        self.__array_interface__ = {"data": (tensor.data, False), "shape": shape, "typestr": DTYPES[tensor.dtype].str, "version": 3}

    def __del__(self):
        library.millrace_release(ctypes.byref(self.tensor), 1)


# Once more, without a look at the types of its arguments, which costs as much as a small layer.
_run = library["millrace_run"]
FEW_BYTES, MOST_PREPARED = 1 << 16, 64


def _as_type(array, dtype):
    """TypeError where that would lose what is to the right of a point, or imaginary, or an integer's size."""
    made = array.astype(dtype, casting="same_kind", copy=False)
    if made.dtype.kind in "iu" and made.dtype != array.dtype and not (made == array).all():
        raise TypeError(f"some of the numbers are none of {made.dtype}")
    return made


class _Prepared:
    """A call on arrays of given shapes that are small: copied into arrays that are bound, which costs less
    than to say where they lie."""

    def __init__(self, session, shapes, made):
        self.inputs = [numpy.empty(shape, port.dtype) for shape, port in zip(shapes, session.inputs)]
        self.outputs = [numpy.empty_like(array) for array in made]
        self.call = session._bound(self.inputs, self.outputs)

    def run(self, arrays):
        for own, array in zip(self.inputs, arrays):
            own[...] = array if array.dtype is own.dtype else _as_type(array, own.dtype)
        self.call()
        return [array.copy() for array in self.outputs]


class _Loaded:
    def __reduce__(self):
        raise TypeError("a loaded model is neither copied nor pickled")  # two would free the same


class Session(_Loaded):
    """A model that is there to be run."""

    def __init__(self, path, precision=None, executables=0):
        self._session = ctypes.c_void_p()
        options = Options(ctypes.sizeof(Options), precision.encode() if precision else None, executables)
        _check(library.millrace_load(os.fsencode(path), options, self._session))
        self.inputs = self._ports(library.millrace_input_count, library.millrace_input)
        self.outputs = self._ports(library.millrace_output_count, library.millrace_output)
        self._sized_by_data = any(library.millrace_data_axis(self._session, i) >= 0 for i in range(len(self.outputs)))
        self._prepared = {}  # of shapes: calls that nobody makes now

    def __del__(self):
        library.millrace_free(self._session)

    def _ports(self, count, describe):
        value, ports = Value(), []
        for i in range(count(self._session)):
            _check(describe(self._session, i, value))
            ports.append(Port(value))
        return ports

    def prepare(self, **sizes):
        """Compiles for these sizes of named dimensions: prepare(batch=16)."""
        names = (ctypes.c_char_p * len(sizes))(*[name.encode() for name in sizes])
        _check(library.millrace_prepare(self._session, names, (ctypes.c_int64 * len(sizes))(*sizes.values()), len(sizes)))

    def run(self, *arrays, out=None):
        """The results, in the order of outputs, of arrays in the order of inputs. `out`: contiguous arrays to
        write them to."""
        shapes = None
        if not out:
            try:
                shapes = tuple([array.shape for array in arrays])
                free = self._prepared[shapes]
                call = free.pop()
            # No arrays, or nobody made such a call, or all are at work.
            except (AttributeError, TypeError, KeyError, IndexError):
                pass
            else:
                try:
                    return call.run(arrays)
                finally:
                    free.append(call)
        given, results, keep = self._tensors(arrays, out)
        _check(library.millrace_run(self._session, given, len(given), results, len(results)))
        if out:
            return self._written(results, out)
        made = [numpy.asarray(Result(tensor)) for tensor in results]
        small = sum(array.nbytes for array in [*keep, *made]) <= FEW_BYTES and len(self._prepared) < MOST_PREPARED
        if shapes is not None and small and not self._sized_by_data:
            self._prepared.setdefault(shapes, []).append(_Prepared(self, shapes, made))
        return made

    def _written(self, results, out):
        """Arrays that were written to: where the size depends on data, the beginning of one is the result."""
        dims = [tuple(tensor.dims[: tensor.rank]) for tensor in results]
        if not self._sized_by_data:
            for array, shape, port in zip(out, dims, self.outputs):
                if array.shape != shape:
                    raise Error(f"the array for '{port.name}' is of shape {array.shape}, the result of {shape}")
            return list(out)
        return [array if array.shape == shape else array.reshape(-1)[: numpy.prod(shape, dtype=int)].reshape(shape) for array, shape in zip(out, dims)]

    def bind(self, *arrays, out):
        """A function that runs on what is then in these arrays (not copies of them) and writes to `out`:
        nothing is looked at again.

        Of a model with results whose size depends on data it returns what counts of `out`, else nothing."""
        return self._bound(arrays, out, held=self)

    def _bound(self, arrays, out, held=None):
        given, results, keep = self._tensors(arrays, out)
        if any(one is not other for one, other in zip(keep, arrays)):
            raise Error("arrays to bind must be C-contiguous and of the model's dtypes")
        held = (held, keep, out)  # for as long as the function is there

        def run(call=_run, session=self._session, given=given, inputs=len(given), results=results, outputs=len(results), held=held):
            if call(session, given, inputs, results, outputs):
                _check(1)

        if not self._sized_by_data:
            return run

        def run_and_tell(run=run, tell=self._written, results=results, out=out):
            run()
            return tell(results, out)

        return run_and_tell

    def _tensors(self, arrays, out):
        given, results = (Tensor * len(arrays))(), (Tensor * len(self.outputs))()
        if any(array is None or isinstance(array, dict) for array in arrays):  # as ONNX Runtime takes them
            raise TypeError("run() takes arrays alone, in this order: " + ", ".join(port.name for port in self.inputs))
        keep = []  # arrays that had to be copied, while they are read
        for tensor, array, port in zip(given, arrays, self.inputs):
            array = _as_type(numpy.asarray(array), port.dtype)
            keep.append(array if array.flags.c_contiguous else numpy.ascontiguousarray(array))
            tensor.data, tensor.dtype, tensor.rank = keep[-1].ctypes.data, port.code, array.ndim
            tensor.dims[: array.ndim] = array.shape
        if out and len(out) != len(self.outputs):
            raise Error(f"{len(out)} arrays are no {len(self.outputs)} results")
        for tensor, array, port in zip(results, out or (), self.outputs):
            if array.dtype != port.dtype:
                raise Error(f"the array for '{port.name}' is of {array.dtype}, the result of {port.dtype}")
            if not array.flags.c_contiguous or not array.flags.writeable:
                raise Error("arrays for results must be C-contiguous and writeable")
            tensor.data, tensor.capacity = array.ctypes.data, array.nbytes
        return given, results, keep


def _fits(value, name, least=-(2**63), most=2**63 - 1):
    """ctypes takes the last 64 bits of any number."""
    if not least <= operator.index(value) <= most:
        raise OverflowError(f"{name} {value}: from {least} to {most}")
    return value


def _ids(given):
    array = numpy.asarray(list(given))
    if array.size == 0:
        return numpy.zeros(0, numpy.int32)
    if array.ndim != 1:
        raise TypeError(f"ids of one row are wanted, not an array of shape {array.shape}")
    return numpy.ascontiguousarray(_as_type(array, numpy.dtype(numpy.int32)))


class Decoder(_Loaded):
    """Sequences of tokens that grow, of which a model tells what comes next; for one thread at a time.

        decoder = millrace.Decoder("gpt2.onnx")
        for token in decoder.generate([464, 3290], 20): ...

    Keys and values of earlier tokens are kept here: a step computes new tokens alone."""

    _decoder = None

    def __init__(self, path, rows=1, longest=0, memory=0, precision=None):
        self._decoder, sizes = ctypes.c_void_p(), DecoderSize()
        numbers = _fits(rows, "rows"), _fits(longest, "longest"), _fits(memory, "memory")
        options = DecoderOptions(ctypes.sizeof(DecoderOptions), precision.encode() if precision else None, *numbers)
        _check(library.millrace_decoder_load(os.fsencode(path), options, self._decoder))
        _check(library.millrace_decoder_sizes(self._decoder, sizes))
        self.rows, self.longest, self.capacity, self.vocabulary = sizes.rows, sizes.longest, sizes.capacity, sizes.vocabulary

    def __del__(self):
        library.millrace_decoder_free(self._decoder)

    def step(self, tokens):
        """Appends tokens to rows, {row: ids}: float32[rows, vocabulary], what may come behind the last one of
        each."""
        if not isinstance(tokens, dict):
            raise TypeError("step() takes {row: ids}")
        ids = [_ids(given) for given in tokens.values()]
        rows = (NewTokens * len(ids))(*[NewTokens(_fits(row, "row"), own.ctypes.data, own.size) for row, own in zip(tokens, ids)])
        logits = numpy.empty((len(ids), self.vocabulary), numpy.float32)
        _check(library.millrace_decoder_step(self._decoder, rows, len(ids), logits.ctypes.data))
        return logits

    def length(self, row=0):
        """The tokens that a row has."""
        length = ctypes.c_int64()
        _check(library.millrace_decoder_length(self._decoder, _fits(row, "row"), length))
        return length.value

    def clear(self, row=0):
        """Forgets a row's tokens, so that another sequence may begin there."""
        _check(library.millrace_decoder_clear(self._decoder, _fits(row, "row")))

    def generate(self, tokens, count, row=0, stop=(), **options):
        """Up to `count` ids behind these, one by one, until one of `stop` or the row is full; options: of
        sample(). The last one is not in the row: who goes on there begins with it."""
        tokens = list(tokens)
        there = tokens if "repetition" in options else []
        sample([0], there, **options)  # wrong ones are said before the row has anything
        if count <= 0:
            return
        (logits,) = self.step({row: tokens})
        for place in range(count):
            token = sample(logits, there, place=place, **options)
            yield token
            if there:
                there.append(token)
            if token in stop or place + 1 == count or self.length(row) == self.longest:
                return
            (logits,) = self.step({row: [token]})


def sample(logits, before=(), temperature=0, top_k=0, top_p=1, repetition=1, seed=0, stream=0, place=0):
    """One token id by logits; `before`: those that count as repeated. The random number is that of (seed,
    stream, place)."""
    logits, before = numpy.ascontiguousarray(logits, numpy.float32), _ids(before)
    if numpy.ndim(logits) != 1:
        raise TypeError(f"logits of one row are wanted, not an array of shape {logits.shape}")
    for name, value in (("seed", seed), ("stream", stream), ("place", place)):
        _fits(value, name, 0, 2**64 - 1)
    _fits(top_k, "top_k")
    options, token = SampleOptions(ctypes.sizeof(SampleOptions), temperature, top_k, top_p, repetition, seed), ctypes.c_int32()
    _check(library.millrace_sample(logits.ctypes.data, logits.size, before.ctypes.data, before.size, options, stream, place, token))
    return token.value


if __name__ == "__main__":
    import sys

    session = Session(sys.argv[1])
    print("takes", *session.inputs)
    print("gives", *session.outputs)
    zeros = [numpy.zeros([1 if isinstance(d, str) else d for d in port.shape], port.dtype) for port in session.inputs]
    for port, array in zip(session.outputs, session.run(*zeros)):
        print(port.name, array.dtype, array.shape, array.ravel()[:3])
