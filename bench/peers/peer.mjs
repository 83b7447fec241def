// Measures node-llama-cpp on one model: tokens per second of a prompt and of several conversations that generate at
// once. One JSON object on standard output.
//
//   node peer.mjs MODEL.gguf THREADS PROMPT GENERATE BATCH[,BATCH...]

import process from "node:process";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const [modelPath, threadCount, promptLength, generateLength, batches] = process.argv.slice(2);
const threads = Number(threadCount);
const promptTokens = Number(promptLength);
const generated = Number(generateLength);

const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: threads});
const model = await llama.loadModel({modelPath, gpuLayers: 0});
const vocabulary = model.fileInfo.metadata.tokenizer?.ggml?.tokens?.length ?? 256;

// Ids that are the same in every run.
function ids(count, seed) {
  const list = [];
  for (let i = 0, state = seed; i < count; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    list.push(16 + (state % Math.max(1, vocabulary - 16)));
  }
  return list;
}

function contextFor(sequences, tokens) {
  return model.createContext({
    contextSize: tokens + 64,
    batchSize: Math.max(512, tokens),
    sequences,
    threads: {ideal: threads, min: threads}
  });
}

async function secondsOf(work) {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) * 1e-9;
}

async function promptRate() {
  const context = await contextFor(1, promptTokens);
  const sequence = context.getSequence();
  await sequence.evaluateWithoutGeneratingNewTokens(ids(promptTokens, 7));  // what is made at the first use
  await sequence.clearHistory();
  const seconds = await secondsOf(() => sequence.evaluateWithoutGeneratingNewTokens(ids(promptTokens, 1)));
  await context.dispose();
  return promptTokens / seconds;
}

// The tokens that were generated: fewer than wanted where the model ended its text and cannot be made to go on.
async function generate(sequence, seed, wanted) {
  let count = 0;
  let next = ids(1, seed);
  while (count < wanted) {
    const before = count;
    for await (const token of sequence.evaluate(next, {temperature: 0, yieldEogToken: true})) {
      next = [token];
      if (++count === wanted) break;
    }
    if (count === before) break;
  }
  return count;
}

async function generationRate(conversations) {
  const context = await contextFor(conversations, generated + 8);
  const sequences = Array.from({length: conversations}, () => context.getSequence());
  await Promise.all(sequences.map((sequence, i) => generate(sequence, i + 1, 4)));
  let count = 0;
  const seconds = await secondsOf(async () => {
    const counts = await Promise.all(sequences.map((sequence, i) => generate(sequence, i + 100, generated)));
    count = counts.reduce((sum, each) => sum + each, 0);
  });
  await context.dispose();
  return count / seconds;
}

const result = {pp: await promptRate(), tg: {}};
for (const number of batches.split(",").map(Number)) result.tg[number] = await generationRate(number);
console.log(JSON.stringify(result));
await llama.dispose();
process.exit(0);
