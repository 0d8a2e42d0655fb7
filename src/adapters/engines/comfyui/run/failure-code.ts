/**
 * Whose fault it was that a node raised: the graph's, or that of the machine it ran on. A server tells only Python's exception and its
 * text, so the exception's type decides first which texts can mean what: a ValueError that quotes "No space left on device" is about
 * the caller's words. Pure.
 */

export type FailureCode =
  | 'node_execution_error'
  | 'out_of_memory'
  | 'cuda_fault'
  | 'machine_fault'
  | 'missing_weights'
  | 'missing_node_class'
  | 'invalid_workflow'
  | 'input_too_large'
  | 'stalled'

interface Rule {
  readonly code: FailureCode
  readonly type: RegExp
  readonly text: RegExp
}

const ANY_TEXT = /(?:)/
/** Of the operating system, by Python itself and by PyAV, which names its errors alike. */
const SYSTEM_TYPE = /(?:^|\.)(?:OSError|IOError|EnvironmentError|PermissionError|BlockingIOError|shutil\.Error)$/
/** What nodes and libraries wrap another error in. */
const WRAPPER_TYPE =
  /^(?:Exception|RuntimeError|SystemError)$|^torch\.|(?:^|\.)(?:AcceleratorError|SafetensorError|DeferredCudaCallError|HipError|CUDARuntimeError|CUDADriverError|XFormersError|TritonError)$/
const SYSTEM_OR_WRAPPER = new RegExp(`${SYSTEM_TYPE.source}|${WRAPPER_TYPE.source}`)
const IMPORT_TYPE = /(?:^|\.)(?:ImportError|ModuleNotFoundError)$/

/**
 * As Python writes them: EPERM, EIO, EACCES, ENODEV, ENFILE, EMFILE, ENOSPC, EROFS, ESTALE, EUCLEAN, ENOTCONN, EREMOTEIO, EDQUOT (with the
 * numbers of macOS for the last one), and Windows' own for the same.
 */
const SYSTEM_TEXT =
  /\[Errno (?:1|5|13|19|23|24|28|30|107|116|117|121|122)\] |\[Errno 69\] Disc quota|\[WinError (?:5|19|21|39|112|1117|1295|1450)\] /
/** Libraries that are not Python's say it in other words. */
const STORAGE_TEXT =
  /\(os error (?:1|5|13|23|24|28|30|122)\)|PytorchStreamWriter failed writing|inline_container\.cc:\d+\] \. unexpected pos|database or disk is full|disk I\/O error|attempt to write a readonly database/
const LIBRARY_TEXT =
  /cannot open shared object file|version `(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found|undefined symbol: |DLL load failed|\[WinError (?:126|127|193|1114)\] |Failed to import [\w.]+ because of|wrong ELF class|invalid ELF header|Library not loaded: /
const DRIVER_TEXT =
  /no kernel image is available|CUDA driver version is insufficient|CUDA driver initialization failed|Found no NVIDIA driver|NVIDIA driver on your system is too old|No (?:CUDA|HIP|XPU|NPU) GPUs are available|no (?:CUDA|ROCm)-capable device|Unexpected error from cudaGetDeviceCount|Torch not compiled with CUDA|forward compatibility was attempted|invalid device function|system not yet initialized|all CUDA-capable devices are busy/i
/** After one of these the context of the process on the card is broken, and every later call fails as well. */
const CONTEXT_TEXT =
  /\b(?:CUDA|HIP|NCCL|MUSA) error\b|\bdevice-side assert|\billegal memory access|\bunspecified launch failure|CUBLAS_STATUS_(?!ALLOC_FAILED)\w+|CUDNN_STATUS_\w+|cuDNN error|rocBLAS error|MIOpen error|hipError\w+|uncorrectable ECC|(?:GPU|device) (?:is|was|has been) lost|DEVICE_LOST|CUDA_ERROR_(?!OUT_OF_MEMORY)\w+/i
const NO_MEMORY_TYPE = /OutOfMemory|MemoryError$/
const NO_MEMORY_TEXT =
  /\bout of memory\b|can't allocate memory|^Allocation on device|not enough memory: you tried to allocate|CUBLAS_STATUS_ALLOC_FAILED|CUDA_ERROR_OUT_OF_MEMORY|\[Errno 12\] |\[WinError (?:8|14|1455)\] /i
const ABSENT_TYPE = /FileNotFoundError|OSError|IOError/
const WEIGHTS_NAME = /[\w./\\-]+\.(?:safetensors|sft|ckpt|pt2?|pth|bin|pkl|gguf|onnx)\b/i
const MODEL_NOT_FOUND = /model in folder .* not found|could not find (?:a )?(?:model|checkpoint)/i

/** The first that fits counts. */
const RULES: readonly Rule[] = [
  { code: 'out_of_memory', type: NO_MEMORY_TYPE, text: ANY_TEXT },
  { code: 'out_of_memory', type: SYSTEM_OR_WRAPPER, text: NO_MEMORY_TEXT },
  { code: 'machine_fault', type: IMPORT_TYPE, text: ANY_TEXT },
  { code: 'machine_fault', type: SYSTEM_OR_WRAPPER, text: SYSTEM_TEXT },
  { code: 'machine_fault', type: SYSTEM_OR_WRAPPER, text: LIBRARY_TEXT },
  { code: 'machine_fault', type: new RegExp(`${SYSTEM_OR_WRAPPER.source}|OperationalError$`), text: STORAGE_TEXT },
  // PyTorch without CUDA asserts that it has it.
  { code: 'machine_fault', type: new RegExp(`${WRAPPER_TYPE.source}|^AssertionError$`), text: DRIVER_TEXT },
  { code: 'cuda_fault', type: WRAPPER_TYPE, text: CONTEXT_TEXT },
  { code: 'cuda_fault', type: /(?:^|\.)AcceleratorError$/, text: ANY_TEXT },
  { code: 'missing_weights', type: ABSENT_TYPE, text: WEIGHTS_NAME },
  { code: 'missing_weights', type: ANY_TEXT, text: MODEL_NOT_FOUND },
]

/** The words that matter stand at the beginning; a text of megabytes is not searched. */
const MAX_SEARCHED = 16_384

/** `words`: what the caller wrote into the graph. Where the text repeats them, they say nothing about the machine. */
export function toFailureCode(exceptionType: string, text: string, words: Iterable<string> = []): FailureCode {
  const searched = withoutWords(text.slice(0, MAX_SEARCHED), words)
  const rule = RULES.find((each) => each.type.test(exceptionType) && each.text.test(searched))
  return rule?.code ?? 'node_execution_error'
}

/** Shorter ones are no sentence that could be taken for another's. */
const MIN_WORDS = 8

function withoutWords(text: string, words: Iterable<string>): string {
  let rest = text
  for (const each of words) if (each.length >= MIN_WORDS) rest = rest.replaceAll(each, '')
  return rest
}
