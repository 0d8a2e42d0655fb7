/**
 * The environment variables that processes and threads inherit from the service: those for finding programs, libraries and
 * graphics cards, and for the language. All others are withheld, because any variable may hold a secret: the service's own
 * settings, and whatever the operator's platform has set.
 */
const NAMES: ReadonlySet<string> = new Set([
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR', 'TEMP', 'TMP'],
  ...['LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'VIRTUAL_ENV'],
  ...['SYSTEMROOT', 'WINDIR', 'COMSPEC', 'PATHEXT', 'USERPROFILE', 'APPDATA', 'LOCALAPPDATA'],
])
const NAME_STARTS = ['LC_', 'XDG_'] as const
/** For an engine with a graphics card: drivers, Python, and the folders of weights. */
const ENGINE_NAME_STARTS = [
  ...['CUDA', 'NVIDIA_', 'NCCL_', 'CUBLAS_', 'CUDNN_', 'HIP_', 'HSA_', 'ROCR_', 'ROCM_', 'MIOPEN_', 'GPU_', 'ONEAPI_'],
  ...['PYTHON', 'PYTORCH_', 'TORCH', 'TRITON_', 'XFORMERS_', 'CONDA_', 'OMP_', 'MKL_', 'OPENBLAS_'],
  ...['HF_', 'HUGGINGFACE_', 'TRANSFORMERS_', 'COMFYUI_'],
] as const
const SECRET_WORD = /TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|KEY/

type Environment = Readonly<Record<string, string | undefined>>

function pick(environment: Environment, starts: readonly string[], names: ReadonlySet<string>): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(environment).filter(([given]) => {
      const name = given.toUpperCase()
      return names.has(name) || (starts.some((start) => name.startsWith(start)) && !SECRET_WORD.test(name))
    }),
  )
}

/** For an engine that the service launches. Further variables can be set in its command: `env NAME=value program`. */
export function readChildEnvironment(environment: Environment = process.env): NodeJS.ProcessEnv {
  return pick(environment, [...NAME_STARTS, ...ENGINE_NAME_STARTS], NAMES)
}

/** For whoever makes environments: as engines, and where certificates lie that an operator added. */
export function readBuilderEnvironment(environment: Environment = process.env): NodeJS.ProcessEnv {
  return pick(environment, [...NAME_STARTS, 'CUDA', 'NVIDIA_', 'ROCM_', 'HIP_'], new Set([...NAMES, 'GIT_SSL_CAINFO']))
}

/** For threads of the built-in engine and the programs that they start. The last name lets threads use the compile cache. */
export function readThreadEnvironment(environment: Environment = process.env): NodeJS.ProcessEnv {
  return pick(environment, NAME_STARTS, new Set([...NAMES, 'NODE_COMPILE_CACHE']))
}
