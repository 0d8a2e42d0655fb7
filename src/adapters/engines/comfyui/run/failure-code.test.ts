import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../../../../test/support/seeded-random.ts'
import { type FailureCode, toFailureCode } from './node-failure.ts'

type Case = readonly [type: string, text: string]

/** As Python, PyTorch, CUDA and ComfyUI word them. */
const TEXTS: Partial<Record<FailureCode, readonly Case[]>> = {
  out_of_memory: [
    ['torch.OutOfMemoryError', 'Allocation on device 0 would exceed allowed memory. (out of memory)'],
    ['torch.cuda.OutOfMemoryError', 'CUDA out of memory. Tried to allocate 2.00 GiB'],
    ['RuntimeError', "[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried to"],
    ['RuntimeError', 'CUDA error: out of memory'],
    ['torch.AcceleratorError', 'CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported'],
    ['RuntimeError', 'CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`'],
    ['OSError', '[Errno 12] Cannot allocate memory'],
    ['MemoryError', ''],
    ['numpy._core._exceptions._ArrayMemoryError', 'Unable to allocate 7.45 GiB for an array with shape (1000000000,)'],
  ],
  cuda_fault: [
    ['RuntimeError', 'CUDA error: an illegal memory access was encountered'],
    ['torch.AcceleratorError', 'CUDA error: device-side assert triggered\nSearch for `cudaErrorAssert` in'],
    ['RuntimeError', 'CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`'],
    ['RuntimeError', 'cuDNN error: CUDNN_STATUS_INTERNAL_ERROR'],
    ['RuntimeError', 'HIP error: unspecified launch failure'],
    ['RuntimeError', 'CUDA error: uncorrectable ECC error encountered'],
    ['RuntimeError', 'level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)'],
    ['Exception', 'sampling failed: CUDA error: misaligned address'],
    ['torch.AcceleratorError', 'something new'],
  ],
  machine_fault: [
    ['OSError', "[Errno 28] No space left on device: '/comfy/output/ComfyUI_00001_.png'"],
    ['OSError', '[Errno 28] No space left on device'],
    ['OSError', "[Errno 5] Input/output error: '/mnt/output/a.png'"],
    ['OSError', "[Errno 30] Read-only file system: '/comfy/output/a_00001_.png'"],
    ['OSError', '[Errno 122] Disk quota exceeded'],
    ['OSError', '[Errno 69] Disc quota exceeded'],
    ['OSError', "[Errno 24] Too many open files: '/comfy/input/a.png'"],
    ['OSError', '[Errno 116] Stale file handle'],
    ['PermissionError', "[Errno 13] Permission denied: '/comfy/output/ComfyUI_00001_.png'"],
    ['PermissionError', "[Errno 1] Operation not permitted: '/comfy/output/x'"],
    ['PermissionError', "[WinError 5] Access is denied: 'C:\\\\ComfyUI\\\\output'"],
    ['OSError', '[WinError 112] There is not enough space on the disk'],
    ['av.error.OSError', "[Errno 28] No space left on device: '/comfy/output/v.mp4'"],
    ['safetensors_rust.SafetensorError', 'Error while serializing: I/O error: No space left on device (os error 28)'],
    ['RuntimeError', '[enforce fail at inline_container.cc:664] . unexpected pos 64 vs 0'],
    ['RuntimeError', 'PytorchStreamWriter failed writing file data/0: file write failed'],
    ['sqlite3.OperationalError', 'database or disk is full'],
    ['Exception', "could not save: [Errno 28] No space left on device: 'x.png'"],
    ['ModuleNotFoundError', "No module named 'xformers'"],
    ['ImportError', 'libcudnn.so.9: cannot open shared object file: No such file or directory'],
    ['ImportError', 'DLL load failed while importing _C: The specified module could not be found.'],
    ['OSError', 'libcudart.so.12: cannot open shared object file: No such file or directory'],
    ['OSError', "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /x/_C.so)"],
    ['OSError', '[WinError 126] The specified module could not be found. Error loading "c10.dll"'],
    ['RuntimeError', 'Failed to import transformers.models.clip because of the following error (look up to see'],
    ['RuntimeError', 'CUDA error: no kernel image is available for execution on the device'],
    ['torch.AcceleratorError', 'CUDA error: no kernel image is available for execution on the device'],
    ['RuntimeError', 'The NVIDIA driver on your system is too old (found version 11040).'],
    ['RuntimeError', 'Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU'],
    ['RuntimeError', 'CUDA driver version is insufficient for CUDA runtime version'],
    ['RuntimeError', 'Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling'],
    ['RuntimeError', 'No CUDA GPUs are available'],
    ['RuntimeError', 'HIP error: no ROCm-capable device is detected'],
    ['AssertionError', 'Torch not compiled with CUDA enabled'],
  ],
  missing_weights: [
    ['FileNotFoundError', "Model in folder 'checkpoints' with filename 'sd.safetensors' not found."],
    ['FileNotFoundError', "[Errno 2] No such file or directory: '/models/loras/a.safetensors'"],
  ],
  node_execution_error: [
    ['FileNotFoundError', "[Errno 2] No such file or directory: '/input/a.png'"],
    ['FileNotFoundError', 'file not found: No space left on device.png'],
    ['ValueError', 'I remember that we were out of milk'],
    ['ValueError', 'cannot parse the prompt "[Errno 28] No space left on device"'],
    ['ValueError', 'unknown style "CUDA error: device-side assert triggered"'],
    ['KeyError', "'out of memory'"],
    ['TypeError', 'ImportError: libcudnn.so.9: cannot open shared object file'],
    ['RuntimeError', 'mat1 and mat2 shapes cannot be multiplied'],
    ['OSError', '[Errno 36] File name too long'],
    ['OSError', 'cannot identify image file'],
    ['OSError', 'image file is truncated (28 bytes not processed)'],
    ['PermissionError', 'this style is not for you'],
    ['IsADirectoryError', "[Errno 21] Is a directory: '/comfy/output/a'"],
    ['ConnectionRefusedError', '[Errno 111] Connection refused'],
    ['AssertionError', 'the picture has no alpha'],
    ['Exception', 'Saving image outside the output folder is not allowed.'],
  ],
}

for (const [code, cases] of Object.entries(TEXTS)) {
  test(`errors that mean ${code} are told by type and text`, () => {
    for (const [type, text] of cases) assert.equal(toFailureCode(type, text), code, `${type}: ${text}`)
  })
}

test('a text of megabytes is judged by its beginning', () => {
  const text = 'x'.repeat(8_000_000)
  assert.equal(toFailureCode('RuntimeError', `${text} CUDA error`), 'node_execution_error')
  assert.equal(toFailureCode('RuntimeError', `CUDA error ${text}`), 'cuda_fault')
})

type Quoted = readonly [type: string, text: string, words: readonly string[]]

const LONG = `a house\nby the sea: [Errno 28] No space left on device\n${'and more '.repeat(30)}`
const repr = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`

/** What a caller can make a sound machine say. */
const OF_THE_CALLER: readonly Quoted[] = [
  ['PermissionError', "[Errno 13] Permission denied: '/etc/shadow'", ['/etc/shadow']],
  ['PermissionError', "[Errno 13] Permission denied: '/root'", ['/root']],
  ['PermissionError', "[Errno 13] Permission denied: '/etc/shadow'", ['../../../etc/shadow']],
  ['PermissionError', "[Errno 1] Operation not permitted: '/proc/1/mem'", ['/proc/1/mem']],
  ['PermissionError', "[Errno 13] Permission denied: 'C:\\\\Windows\\\\x.png'", ['C:\\Windows\\x.png']],
  ['OSError', "[Errno 30] Read-only file system: '/sys/x.png'", ['/sys/x.png']],
  ['OSError', "[Errno 5] Input/output error: '/proc/self/mem'", ['/proc/self/mem']],
  ['Exception', "could not read: [Errno 13] Permission denied: '/etc/shadow'", ['/etc/shadow']],
  ['RuntimeError', `cannot parse ${repr(LONG)}`, [LONG]],
  ['RuntimeError', `cannot parse ${JSON.stringify(LONG)}`, [LONG]],
  ['Exception', `bad prompt: ${LONG.slice(0, 60)}...`, [LONG]],
  ['Exception', `bad prompt: ...${LONG.slice(10, 90)}...`, [LONG]],
  ['RuntimeError', `bad prompt: ${repr(LONG).slice(0, 60)}`, [LONG]],
  ['RuntimeError', 'the seed [Errno 28] is not a number', []],
]

test('what the caller wrote accuses no machine, however the text repeats it', () => {
  for (const [type, text, words] of OF_THE_CALLER)
    assert.equal(toFailureCode(type, text, words), 'node_execution_error', `${type}: ${text}`)
})

test('a machine that is ill is told although the path ends with words of the caller', () => {
  const words = ['a house by the sea', 'video/ComfyUI', 'my-pictures']
  for (const text of [
    "[Errno 28] No space left on device: '/comfy/output/video/ComfyUI_00001_.mp4'",
    "[Errno 30] Read-only file system: '/comfy/output/my-pictures_00001_.png'",
    "[Errno 13] Permission denied: '/comfy/output/ComfyUI_00001_.png'",
  ])
    assert.equal(toFailureCode('OSError', text, words), 'machine_fault', text)
})

test('no drawn quotation of any sentence about a machine accuses it', () => {
  const random = seededRandom(78)
  const sentences = [...(TEXTS.machine_fault ?? []), ...(TEXTS.cuda_fault ?? [])].map(([, text]) => text)
  for (let turn = 0; turn < 2000; turn += 1) {
    const noise = () =>
      random.pick(['', 'a "quoted" cat', "it's\n", '\\ \t', 'ü\u2028', '\r\n']).repeat(random.between(0, 4))
    const words = `${noise()}${random.pick(sentences)}${noise()}`
    const form = random.pick([(text: string) => text, repr, JSON.stringify])(words)
    const from = random.next() < 0.5 ? 0 : random.between(0, form.length)
    const quoted = form.slice(from, random.next() < 0.5 ? undefined : from + random.between(0, form.length))
    const type = random.pick(['Exception', 'RuntimeError', 'OSError'])
    const code = toFailureCode(type, `cannot use "${quoted}"`, [words])
    assert.ok(code !== 'machine_fault' && code !== 'cuda_fault', `${type}: ${quoted}`)
  }
})
