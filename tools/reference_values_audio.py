"""Writes tests/data/codecs/sounds/audio_values.inc: small sound files, their samples, resampled sounds and
mel spectrograms.

Run it with a Python that has librosa 0.11 (with soundfile and soxr): tools/reference_values_audio.py >
tests/data/codecs/sounds/audio_values.inc. With a folder as argument the files are written there too (seeds of
the fuzzer).
"""

import io
import sys
from pathlib import Path

import librosa
import numpy as np
import soundfile
import soxr


def signal(count, rate):
    """A tone that rises, and a sawtooth; the test makes the same."""
    i = np.arange(count, dtype=np.float64)
    x = 0.5 * np.sin(2 * np.pi * (300 + 0.3 * i) * i / rate) + 0.2 * ((i * 7919 % 1000) / 1000 - 0.5)
    return x.astype(np.float32)


def numbers(values):
    return "{" + ", ".join(f"{v:.7g}f" if "." in f"{v:.7g}" or "e" in f"{v:.7g}" else f"{v:.7g}.0f" for v in values) + "}"


def file(name, kind, subtype, channels, rate):
    samples = np.stack([signal(40, rate) * (1 - 0.5 * c) for c in range(channels)], axis=1)
    out = io.BytesIO()
    soundfile.write(out, samples, rate, format=kind, subtype=subtype)
    raw = out.getvalue()
    read, _ = soundfile.read(io.BytesIO(raw), dtype="float32", always_2d=True)
    print(f'{{"{name}", {rate}, {channels}, "{raw.hex()}",\n {numbers(read.ravel())}}},')
    if len(sys.argv) > 1:
        (Path(sys.argv[1]) / f"{name.replace(' ', '-')}.{kind.lower()}").write_bytes(raw)


def mel(count, rate, fft, window, hop, mels, low, high, htk):
    values = librosa.feature.melspectrogram(
        y=signal(count, rate), sr=rate, n_fft=fft, win_length=window, hop_length=hop, n_mels=mels, fmin=low,
        fmax=high or None, htk=htk, pad_mode="constant",
    )
    print(f"{{{count}, {{{rate}, {fft}, {window}, {hop}, {mels}, {low}, {high}, {str(htk).lower()}}},")
    print(f" {numbers(values.ravel())}}},")


def resampled(count, rate, to):
    values = soxr.resample(signal(count, rate), rate, to, quality="HQ")
    print(f"{{{count}, {rate}, {to}, {numbers(values)}}},")


print("// Written by tools/reference_values_audio.py with librosa, soundfile and soxr; do not edit.")
print("// clang-format off")
print("// name, rate, channels, the file, its samples")
print("const SoundCase sound_cases[] = {")
file("pcm 16", "WAV", "PCM_16", 1, 8000)
file("pcm 8", "WAV", "PCM_U8", 2, 11025)
file("pcm 24", "WAV", "PCM_24", 2, 48000)
file("float", "WAV", "FLOAT", 1, 16000)
file("a law", "WAV", "ALAW", 1, 8000)
file("mu law", "WAV", "ULAW", 1, 8000)
file("ima adpcm", "WAV", "IMA_ADPCM", 1, 8000)
file("extensible", "WAVEX", "PCM_16", 1, 8000)
file("flac 16", "FLAC", "PCM_16", 1, 8000)
file("flac 24", "FLAC", "PCM_24", 2, 44100)
print("};")
print("// samples, options, power")
print("const MelCase mel_cases[] = {")
mel(500, 8000, 256, 200, 80, 20, 0, 0, False)
mel(400, 16000, 512, 512, 200, 40, 20, 7600, True)
mel(300, 22050, 300, 300, 100, 10, 100, 5000, False)
print("};")
print("// samples, rate, to, resampled")
print("const ResampleCase resample_cases[] = {")
resampled(200, 8000, 16000)
resampled(300, 16000, 8000)
resampled(220, 44100, 16000)
print("};")
