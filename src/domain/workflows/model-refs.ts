/** Which constants of a graph name weights: files that an engine must have installed and loads before it can work. */

const WEIGHTS = /\.(?:safetensors|sft|ckpt|pt|pt2|pth|bin|pkl|gguf|onnx)$/i

/** By its name alone; whoever asks knows that the value was picked from a list. */
export function isWeights(name: string): boolean {
  return WEIGHTS.test(name)
}
