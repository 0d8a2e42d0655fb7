/**
 * A real ComfyUI that the service starts and watches itself. Which one: `ATELIER_TEST_COMFYUI` names the folder of its `main.py`,
 * `ATELIER_TEST_COMFYUI_PYTHON` the Python that has what it needs. It computes on the processor and has no weights.
 */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'

const folder = process.env['ATELIER_TEST_COMFYUI'] ?? ''
const python = process.env['ATELIER_TEST_COMFYUI_PYTHON'] ?? 'python3'

/** Whether one is named. Its gigabytes of packages are nothing to install for a test: without a name there are no such tests. */
export const hasRealComfyui: boolean = existsSync(path.join(folder, 'main.py'))

// What it lists when it starts, and does not make by itself.
const FOLDERS = ['custom_nodes', 'models', 'input', 'output', 'temp', 'user']

export interface RealComfyui extends AsyncDisposable {
  /** For `--comfyui-launch`. */
  readonly command: string
}

interface RealComfyuiOptions {
  /** A custom node, in Python. */
  readonly customNode?: string
}

/** Its files lie in a folder of their own, so that nothing of an earlier run counts. */
export async function prepareRealComfyui({ customNode }: RealComfyuiOptions = {}): Promise<RealComfyui> {
  const base = await mkdtemp(path.join(tmpdir(), 'atelier-test-comfyui-'))
  for (const name of FOLDERS) await mkdir(path.join(base, name))
  if (customNode !== undefined) await writeFile(path.join(base, 'custom_nodes', 'test_node.py'), customNode)
  const words = [python, path.join(folder, 'main.py'), '--cpu', '--port', '{port}', '--base-directory', base]
  return {
    command: words.map((word) => `'${word}'`).join(' '),
    [Symbol.asyncDispose]: () => rm(base, { recursive: true, force: true }),
  }
}
