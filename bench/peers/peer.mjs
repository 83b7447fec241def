// Measures node-llama-cpp on one model: tokens per second of a prompt and of several conversations that generate at
// once. One JSON object on standard output.
//
//   node peer.mjs MODEL.gguf THREADS PROMPT GENERATE BATCH[,BATCH...]

import process from "node:process";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const [modelPath, threads, prompt, generate, batches] = process.argv.slice(2);
const promptTokens = Number(prompt);
const generated = Number(generate);
const numbers = batches.split(",").map(Number);
const most = Math.max(...numbers);

const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: Number(threads)});
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

const context = await model.createContext({
  contextSize: promptTokens + generated + 64,
  batchSize: Math.max(512, promptTokens),
  sequences: most,
  threads: Number(threads)
});

async function promptRate() {
  const sequence = context.getSequence();
  await sequence.evaluateWithoutGeneratingNewTokens(ids(16, 7));  // what is made at the first use
  await sequence.clearHistory();
  const start = process.hrtime.bigint();
  await sequence.evaluateWithoutGeneratingNewTokens(ids(promptTokens, 1));
  const seconds = Number(process.hrtime.bigint() - start) * 1e-9;
  await sequence.dispose();
  return promptTokens / seconds;
}

async function generateSome(sequence, seed) {
  let left = generated;
  for await (const token of sequence.evaluate(ids(1, seed), {temperature: 0, yieldEogToken: true})) {
    if (--left === 0) return token;
  }
  return null;
}

async function generationRate(conversations) {
  const sequences = Array.from({length: conversations}, () => context.getSequence());
  const start = process.hrtime.bigint();
  await Promise.all(sequences.map((sequence, i) => generateSome(sequence, i + 1)));
  const seconds = Number(process.hrtime.bigint() - start) * 1e-9;
  for (const sequence of sequences) await sequence.dispose();
  return conversations * generated / seconds;
}

const result = {pp: await promptRate(), tg: {}};
for (const number of numbers) result.tg[number] = await generationRate(number);
console.log(JSON.stringify(result));
await llama.dispose();
process.exit(0);
