// The one list of the keys that every recipe may have: parsing, checking, writing and help all go by it.
#include "base/format.h"
#include "data/order/order.h"
#include "data/table/part_of.h"
#include "data/table/query.h"
#include "data/table/split.h"
#include "task/recipe.h"

namespace millrace::task {

#define SLOT(MEMBER) [](Recipe& r) -> RecipeSlot { return &r.MEMBER; }

namespace {

RecipeKey path(RecipeKey key) {
  key.path = true;
  return key;
}

/// Of a whole number: `word` stands for 0.
RecipeKey worded(RecipeKey key, const char* word) {
  key.word = word;
  return key;
}

RecipeKey resumable(RecipeKey key) {
  key.resumable = true;
  return key;
}

void check_condition(const std::string& text) {
  try {
    if (!text.empty()) (void)data::Query::parse(text);
  } catch (const InputError& error) {
    fail<InputError>("is wrong: {}", error.what());
  }
}

std::vector<RecipeKey> data_keys() {
  return {
      {"data.base",
       "the folder that relative paths of the recipe begin in; empty: the current one. A run remembers the "
       "one that it was begun in",
       SLOT(data.base)},
      path({"data.train",
            "training samples: a folder with a folder a class, a tar of them, WebDataset shards, IDX, CSV, "
            "Parquet, JSON lines, texts …",
            SLOT(data.train)}),
      path({"data.train.NAME",
            "several sources instead, each with a name of yours: data.train = { ads = \"a.tar\", news = "
            "\"b.tar\" "
            "}; they are mixed by data.weights, and each is gone through in data.order, epoch by epoch",
            SLOT(data.sources)}),
      resumable(
          {"data.weights.NAME",
           "how often samples of each source are drawn, as { ads = 0.3, news = 0.7 }; empty: as they have "
           "samples, streams alike; millrace ctl changes them while training runs",
           SLOT(data.weights), 0, 1e12}),
      {"data.stream",
       "read data.train from its beginning on, without random access and without an end that must come: "
       "pipe:COMMAND, - (standard input) or files, with data.order = \"shuffle-buffer N\" or \"sequential\"",
       SLOT(data.stream)},
      {"data.epoch_samples", "of a stream, how many samples count as an epoch; 0: all of train.steps",
       SLOT(data.epoch_samples), 0, 1e15},
      path({"data.test", "samples to test on after each epoch, in the same forms", SLOT(data.test)}),
      {"data.test_where",
       "without data.test: these samples of data.train are kept to test on, as in \"__key__ like '*_ann_*'\"",
       SLOT(data.test_where),
       0,
       0,
       {},
       check_condition},
      {"data.test_share",
       "without data.test: this share of data.train is kept to test on: of samples one in so many, always "
       "the same; of a corpus its end",
       SLOT(data.test_share), 0, 0.9},
      {"data.test_by",
       "how data.test_share divides samples: \"random\", \"stratified\" (of each class its share), "
       "\"group:COLUMN\" (samples of one value stay together; it is then no input) or \"time:COLUMN\" (the "
       "newest are tested on)",
       SLOT(data.test_by),
       0,
       0,
       {},
       [](const std::string& text) { (void)data::SplitBy::parse(text); }},
      {"data.sample",
       "only a small part of what is trained on, as \"2%\" or \"500\" samples, for trying things out: of "
       "each class, or range of the number to be predicted, its share; whole groups of data.test_by = "
       "\"group:COLUMN\"; of a corpus a piece. train.seed decides which; empty: all",
       SLOT(data.sample),
       0,
       0,
       {},
       [](const std::string& text) {
         if (!text.empty()) (void)data::PartSize::parse(text);
       }},
      {"data.where",
       "only samples of data.train that this is true for, as in \"label in (3, 5) and width > 200\"; "
       "data.test_share keeps some of those, data.test_where chooses among all; empty: all",
       SLOT(data.where),
       0,
       0,
       {},
       check_condition},
      {"data.group",
       "column whose values say which rows are one sample together, as the documents of a query: batches, "
       "data.test_share and orders are then of these; empty: each row is a sample, and of outputs of kind "
       "rank the column qid, query_id or query says it",
       SLOT(data.group)},
      {"data.header",
       "of CSV files: does the first line name the columns? Empty: found from the content",
       SLOT(data.header),
       0,
       0,
       {"", "yes", "no"}},
      {"data.missing",
       "of CSV files: further words for what is missing, as [\"unknown\", \"-999\"]; those that programs "
       "write (NA, NULL, NaN …) are known",
       SLOT(data.missing)},
      {"data.order",
       fmt::format("of the samples of an epoch: \"{}\"", fmt::join(data::order_usages(), "\", \"")),
       SLOT(data.order)},
      {"data.sample_weight", "column of weights of the samples in the loss; empty: all weigh the same",
       SLOT(data.sample_weight)},
      resumable({"data.cache_mb",
                 "decoded samples are kept in memory when they fit into so many MB; tokens of texts beyond "
                 "it go to a file",
                 SLOT(data.cache_mb)}),
      resumable({"data.memory",
                 "most memory for samples, those kept (of streams in the shuffle buffer) and those ahead, of "
                 "training and test set together, e.g. 800MB; tokens of texts beyond it go to a file; empty: "
                 "data.cache_mb for each, and a batch or so for each thread",
                 SLOT(data.memory)}),
      resumable({"data.most_bad",
                 "training stops when more samples than that cannot be read: below 1 a share of those tried "
                 "(8 never stop it), from 1 on a number; 0: at the first",
                 SLOT(data.most_bad), 0, 1e15}),
      {"model.layers",
       "the model as a list of layers, instead of model.kind: \"conv 32 3\", \"batch-norm\", \"relu\", "
       "\"max-pool 2\", \"flatten\", \"linear 10\" …",
       SLOT(model.layers)},
  };
}

std::vector<RecipeKey> train_keys() {
  return {
      resumable({"train.epochs", "times the training samples are gone through; parts of one are allowed",
                 SLOT(train.epochs), 0, 1e6}),
      resumable({"train.steps", "number of steps, instead of epochs; 0: by epochs", SLOT(train.steps)}),
      worded({"train.batch",
              "samples a step; \"auto\": measured at the beginning, the fastest that fits the memory, which "
              "the run's recipe then has",
              SLOT(train.batch), 1, 1 << 20},
             "auto"),
      {"train.accumulate",
       "the batch is worked off in so many equal parts, one after the other, whose gradients are summed "
       "for one update: activations take the memory of one part",
       SLOT(train.accumulate), 1, 1 << 20},
      resumable(
          {"train.precision",
           "arithmetic of heavy operators: fp32 or bf16 (where it is not slower; weights stay fp32); "
           "bf16-pure: weights and optimizer state are stored as bf16 too, in half the memory; fp16: as a "
           "GPU would compute it, not faster here",
           SLOT(train.precision),
           0,
           0,
           {"fp32", "bf16", "bf16-pure", "fp16"}}),
      {"train.clip_norm", "gradients are scaled down to this norm over all; 0: not", SLOT(train.clip_norm)},
      {"train.clip_value", "gradient elements are cut to ± this; 0: not", SLOT(train.clip_value)},
      {"train.freeze",
       "parameters or layers that stop training, and after how many epochs: [\"white.bias 3\"]",
       SLOT(train.freeze)},
      {"train.lookahead", "every so many steps the weights go back towards their slow average; 0: off",
       SLOT(train.lookahead)},
      {"train.lookahead_decay", "decay of the slow average a step, times (step / steps)³",
       SLOT(train.lookahead_decay), 0, 1},
      {"train.rates",
       "parameters that train at another rate, by name, * being any letters, and factor: [\"*embed* 0.1\"]; "
       "the first that fits counts",
       SLOT(train.rates)},
      {"train.layer_decay",
       "the rate of each layer is so many times that of the one behind it (0.8, for fine-tuning), of models "
       "whose parameters' names number their layers; 1: not",
       SLOT(train.layer_decay), 1e-3, 1},
      {"train.ema",
       "decay of a moving average of the weights at each step (0.999), which is what is tested, predicted "
       "with and exported; 0: off",
       SLOT(train.ema), 0, 0.9999999},
      {"train.swa",
       "from this share of the run on (0.75) the weights at the end of each epoch are averaged, and their "
       "mean is what is tested, predicted with and exported; 0: off",
       SLOT(train.swa), 0, 1},
      resumable({"train.early_stopping",
                 "the training ends when the metric of train.keep_best has not become better for so many "
                 "tests; 0: it goes on to its end",
                 SLOT(train.early_stopping), 0, 1e9}),
      resumable({"train.lr_scale",
                 "multiplies the whole schedule; millrace ctl changes it while training runs",
                 SLOT(train.lr_scale), 0, 1e6}),
      {"train.seed", "of everything random", SLOT(train.seed)},
      resumable(
          {"train.on_bad_step",
           "what becomes of the training where the loss or the gradients of a step are not finite, or the "
           "loss is beyond train.loss_spike; its update is not made in any case. stop: it ends; skip: it "
           "goes on with the next batch; rollback: it goes on with the next batch, the weights of the last "
           "checkpoint and a lower rate",
           SLOT(train.on_bad_step),
           0,
           0,
           {"stop", "skip", "rollback"}}),
      resumable(
          {"train.loss_spike",
           "a loss is a spike where it is above the median of the last 100 steps by more than so many robust "
           "deviations (1.4826 times the median absolute deviation; 20 is a cautious choice); 0: never",
           SLOT(train.loss_spike), 0, 1e9}),
      resumable({"train.most_bad_steps", "so many bad steps in a row end a training that skips them",
                 SLOT(train.most_bad_steps), 1, 1e9}),
      resumable({"train.most_rollbacks", "a training goes back to a checkpoint so often, then it ends",
                 SLOT(train.most_rollbacks), 1, 1e9}),
      resumable({"train.rollback_lr", "each rollback multiplies the rate by this", SLOT(train.rollback_lr),
                 1e-6, 1}),
      resumable({"train.checkpoint_steps",
                 "a checkpoint every so many steps, besides those at the ends of epochs; 0: none",
                 SLOT(train.checkpoint_steps)}),
      resumable({"train.checkpoint_minutes", "a checkpoint at least every so many minutes; 0: no such limit",
                 SLOT(train.checkpoint_minutes)}),
      resumable({"train.keep_checkpoints", "how many of the newest checkpoints are kept",
                 SLOT(train.keep_checkpoints), 1, 1000}),
      resumable({"train.keep_best",
                 "a metric of the test set, as accuracy or NAME.accuracy: the checkpoint that is best by it "
                 "is kept, too, as checkpoints/best.safetensors; empty: none",
                 SLOT(train.keep_best)}),
      resumable(
          {"train.log",
           "logs beside metrics.jsonl and TensorBoard's events, as \"sqlite runs/all.sqlite\" or \"mlflow "
           "http://localhost:5000 letters\"",
           SLOT(train.log)}),
      resumable(
          {"train.log_every",
           "every so many steps the norms of gradients, weights and updates of each part of the model, the "
           "speed, and what is used of the machine are logged, too; 0: speed and use at the ends of epochs",
           SLOT(train.log_every)}),
      resumable(
          {"train.histograms",
           "at the end of every so many epochs TensorBoard gets histograms of weights and gradients, of "
           "each parameter; 0: none",
           SLOT(train.histograms)}),
      resumable(
          {"train.samples",
           "so many samples of the test set are shown after each test with their targets and predictions, "
           "in TensorBoard and the run folder; 0: none",
           SLOT(train.samples), 0, 64}),
      path({"train.init_from",
            "weights to begin with: a run folder, a checkpoint of one, or any .safetensors with the names of "
            "the model's parameters; a head for other classes is new",
            SLOT(train.init_from)}),
      {"train.init_names",
       "what tensors of train.init_from are called in the model, as [\"encoder.*.query.* blocks.*.qkv.* "
       "1/3\"]: a "
       "pattern, the model's name, which of how many parts, and transposed; the first that fits counts",
       SLOT(train.init_names)},
      {"train.lora",
       "rank of low-rank adapters (LoRA): they and the heads train, and all else stays as it is; 0: none",
       SLOT(train.lora), 0, 1 << 16},
      {"train.lora_alpha", "adapters count lora_alpha / lora times", SLOT(train.lora_alpha), 1e-6, 1e6},
      {"train.lora_layers",
       "linear layers that get adapters, by name, * being any letters: [\"*.qkv\"]; empty: all but the heads",
       SLOT(train.lora_layers)},
      {"train.memory",
       "most memory that a step may need, e.g. 1.5GB: activations are computed again in the backward pass "
       "where that saves most; empty: as much as it takes",
       SLOT(train.memory)},
      {"train.exact",
       "only algorithms that differ from the plain computation by the order of sums at most: no Winograd "
       "convolutions",
       SLOT(train.exact)},
      resumable(
          {"train.verify",
           "every so many steps the compiled step is compared with the reference back end, which is slow; 0: "
           "never",
           SLOT(train.verify)}),

      resumable({"eval.metrics",
                 "what evaluation reports, of several outputs as \"NAME.METRIC\"; empty: what the outputs' "
                 "kinds take by default",
                 SLOT(eval.metrics)}),
      resumable({"eval.batch", "samples at a time", SLOT(eval.batch), 1, 1 << 20}),
      resumable(
          {"eval.generated",
           "of so many rows of the test set the second half is generated from the first and compared, for "
           "bleu, chrf, rouge-l, wer …",
           SLOT(eval.generated), 1, 1 << 20}),

      resumable({"baseline.heuristic",
                 "a rule of your own that millrace baseline measures: \"hours > 40 -> 'rich'; 'poor'\" "
                 "(CONDITION -> CLASS, the first that is true; of two classes a condition alone tells the "
                 "second), or arithmetic on columns for a number, \"40000 * median_income\"",
                 SLOT(baseline.heuristic)}),
      {"baseline.human",
       "a column with what people said, which millrace baseline measures; no input takes it",
       SLOT(baseline.human)},
  };
}

}  // namespace

std::span<const RecipeKey> recipe_keys() {
  static const std::vector<RecipeKey> keys = [] {
    std::vector<RecipeKey> all = data_keys();
    for (RecipeKey& key : train_keys()) all.push_back(std::move(key));
    return all;
  }();
  return keys;
}

}  // namespace millrace::task
