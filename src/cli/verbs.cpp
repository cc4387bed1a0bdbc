// The list of verbs; each is a file here.
#include "cli/verbs.h"

namespace millrace::cli {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> list = {
      {"letters", "make a small data set: pictures of the letters A to J", declare_letters},
      {"pack", "pack pictures from any source into indexed WebDataset shards", declare_pack},
      {"data", "look at data of any format, and convert it", declare_data},
      {"train", "train a model by a recipe", declare_train},
      {"ctl", "say where a training stands, and change it while it runs", declare_ctl},
      {"eval", "measure a trained model on a labelled set", declare_eval},
      {"predict", "say what pictures show", declare_predict},
      {"export", "write a trained model as ONNX", declare_export},
      {"estimate", "say what a training will take: time, memory, what binds", declare_estimate},
      {"explain", "say what a training step is made of: kernels, providers, memory", declare_explain},
      {"profile", "say where the time of a step goes, and how near the machine's limits it is",
       declare_profile},
      {"bench", "measure how fast a built-in network trains or infers here, or a source becomes batches",
       declare_bench},
      {"machine", "measure this machine's limits", declare_machine},
  };
  return list;
}

}  // namespace millrace::cli
