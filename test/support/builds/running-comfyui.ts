/**
 * A ComfyUI for real builders whose releases really run jobs: it loads packs as ComfyUI does, then becomes the fake server with their
 * classes. Each release writes down which processes were started from it, and what they began and ended.
 */
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BuildTarget } from '../../../src/domain/environments/definition.ts'
import { comfyuiFiles, writeFolder } from './packages.ts'

const FAKE = fileURLToPath(new URL('../engines/fake-comfyui/main.ts', import.meta.url))

export interface RunningComfyui {
  /** For the setting `builder`. */
  readonly builderFile: string
  readonly wheels: string
  /** While it exists, servers with the class SlowNode do not start. */
  readonly gate: string
  /** A line of JSON for everything that begins or ends on servers of this release. */
  logOf(releaseId: string): string
  /** Of the servers that were started from it, newest last; the import test's are among them. */
  pidsOf(releaseId: string): number[]
}

interface RunningOptions {
  readonly target: BuildTarget
  /** null: the one on the path. */
  readonly uv: string | null
  /** Further members of the setting. */
  readonly more?: object
}

export async function writeRunning(root: string, { target, uv, more = {} }: RunningOptions): Promise<RunningComfyui> {
  const [logs, gate] = [path.join(root, 'logs'), path.join(root, 'gate')]
  await mkdir(logs)
  const wheels = await writeFolder(path.join(root, 'wheels'), { README: '' })
  const comfyui = await writeFolder(path.join(root, 'comfyui'), { ...comfyuiFiles(), 'main.py': mainPy(logs, gate) })
  const builderFile = path.join(root, 'builder.json')
  const builder = {
    ...{ folder: path.join(root, 'builder'), comfyui, wheels: [wheels], ...(uv !== null && { uv }), registry: 'none' },
    ...{ targets: [`${target.os}/${target.gpu}`], spare: '1MiB', start_within: '2m', ...more },
  }
  await writeFile(builderFile, JSON.stringify(builder))
  const read = (name: string) => {
    const file = path.join(logs, name)
    return existsSync(file) ? readFileSync(file, 'utf8') : ''
  }
  return {
    ...{ builderFile, wheels, gate },
    logOf: (releaseId) => read(releaseId),
    pidsOf: (releaseId) =>
      read(`${releaseId}.pids`)
        .trim()
        .split('\n')
        .map(Number)
        .filter((pid) => pid > 0),
  }
}

function mainPy(logs: string, gate: string): string {
  return `${comfyuiFiles()['main.py']?.split('stats = ')[0]}
import time
while "SlowNode" in listed and os.path.exists(${JSON.stringify(gate)}):
    time.sleep(0.05)
release = os.path.realpath(here).split(os.sep + "releases" + os.sep)[-1].split(os.sep)[0]
packs = {name: about["python_module"] for name, about in listed.items() if about["python_module"] != "nodes"}
log = os.path.join(${JSON.stringify(logs)}, release)
with open(log + ".pids", "a") as pids:
    pids.write(str(os.getpid()) + "\\n")
sys.stdout.flush()
os.execv(${JSON.stringify(process.execPath)}, ["node", ${JSON.stringify(FAKE)}, "--port", str(options.port),
    "--options", json.dumps({"packs": packs, "checkpoints": ["a.safetensors"], "nodeMs": 5}), "--log", log])
`
}
