"""Writes tests/data/encode/table_values.inc: a small table, and its columns as pandas and scikit-learn encode
them.

Run it with a Python that has both: tools/reference_values_tables.py > tests/data/encode/table_values.inc
"""

import io
import random

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

random.seed(7)
COLOURS, SIZES = ["red", "green", "blue", "teal"], ["small", "middle", "large"]


def table(rows, more=()):
    lines = ["age,wage,colour,size,code,class"]
    for i in range(rows):
        age = random.choice(["", str(random.randrange(18, 80))]) if i % 3 == 0 else str(random.randrange(18, 80))
        wage = f"{random.uniform(-5, 90):.2f}"
        colour = random.choices(COLOURS + [""] + list(more), [8, 4, 4, 1, 3] + [5] * len(more))[0]
        size = random.choice(SIZES + ["huge"])
        lines.append(",".join([age, wage, colour, size, str(random.choice([3, 5, 40])), random.choice(["no", "yes"])]))
    return "\n".join(lines) + "\n"


def read(text):
    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])


train_text, test_text = table(30), table(12, ["pink"])
train, test = read(train_text), read(test_text)

columns = [frame[["age", "wage"]].to_numpy(float) for frame in (train, test)]
scaler = StandardScaler().fit(columns[0])
imputer = SimpleImputer(strategy="mean", add_indicator=True).fit(scaler.transform(columns[0]))


def dense(values):
    out = imputer.transform(scaler.transform(values))  # age, wage, then the flag of age
    return out[:, [0, 2, 1]]


def vocabulary(column):
    counts = train[column].fillna("").astype(str).value_counts()
    return sorted(counts.index, key=lambda text: (-counts[text], text))


def ids(frame):
    out = []
    for column in ("colour", "code"):
        known = {text: i + 1 for i, text in enumerate(vocabulary(column))}
        out.append([known.get(text, 0) for text in frame[column].fillna("").astype(str)])
    return np.array(out).T


def array(values):
    return "{" + ", ".join(f"{v:.9g}" for v in values.ravel()) + "}"


print("// Written by tools/reference_values_tables.py with pandas and scikit-learn; do not edit.")
print("// clang-format off")
for name, text, frame, values in (("train", train_text, train, columns[0]), ("test", test_text, test, columns[1])):
    print(f'const char* const {name}_table = R"({text})";')
    print(f"const std::vector<double> {name}_dense = {array(dense(values))};")
    print(f"const std::vector<int64_t> {name}_ids = {array(ids(frame))};")
