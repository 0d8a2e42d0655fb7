/**
 * A real ComfyUI, for a service that starts and watches it itself, or as a server of its own. Which one: `ATELIER_TEST_COMFYUI` names the folder of its `main.py`,
 * `ATELIER_TEST_COMFYUI_PYTHON` the Python that has what it needs. It computes on the processor and has no weights.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { findFreePort } from '../network/free-port.ts'

const folder = process.env['ATELIER_TEST_COMFYUI'] ?? ''
const python = process.env['ATELIER_TEST_COMFYUI_PYTHON'] ?? 'python3'

/** Whether one is named. Its gigabytes of packages are nothing to install for a test: without a name there are no such tests. */
export const hasRealComfyui: boolean = existsSync(path.join(folder, 'main.py'))

// What it lists when it starts, and does not make by itself.
const FOLDERS = ['custom_nodes', 'models', 'input', 'output', 'temp', 'user']

export interface RealComfyui extends AsyncDisposable {
  /** For `--comfyui-launch`. */
  readonly command: string
  /** With everything that is its own. */
  readonly folder: string
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
    folder: base,
    command: words.map((word) => `'${word}'`).join(' '),
    [Symbol.asyncDispose]: () => rm(base, { recursive: true, force: true }),
  }
}

/** Listens when this resolves. It outlives the services that use it. */
export async function startRealComfyui(customNode: string): Promise<RealComfyui & { readonly url: URL }> {
  await using opening = new AsyncDisposableStack()
  const prepared = opening.use(await prepareRealComfyui({ customNode }))
  const port = await findFreePort()
  const command = `exec ${prepared.command.replace('{port}', String(port))}`
  const child = spawn('sh', ['-c', `${command} 2>&1`], { stdio: ['ignore', 'pipe', 'inherit'] })
  const endNow = () => void child.kill('SIGKILL')
  process.on('exit', endNow)
  const exited = once(child, 'exit').then(() => void process.off('exit', endNow))
  opening.defer(() => {
    endNow()
    return exited
  })
  // It imports gigabytes first, so only its word or its end is waited for.
  const listens = Promise.withResolvers<void>()
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => {
    printed = (printed + chunk.toString()).slice(-10_000)
    if (printed.includes('To see the GUI go to')) listens.resolve()
  })
  void exited.then(() => listens.reject(new Error(`ComfyUI ended: ${printed}`)))
  await listens.promise
  const opened = opening.move()
  return { ...prepared, url: new URL(`http://127.0.0.1:${port}`), [Symbol.asyncDispose]: () => opened.disposeAsync() }
}
