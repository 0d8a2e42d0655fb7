/** Runs samples as their readers would, and gives what they were told. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export interface Told {
  /** What was printed: values for TypeScript and Python, a text for curl. */
  readonly said: readonly unknown[]
}

export interface Language extends AsyncDisposable {
  readonly label: 'curl' | 'TypeScript' | 'Python'
  /** `isEndless`: a stream that goes on; its first event is enough. */
  run(source: string, token: string | null, isEndless: boolean): Promise<Told>
}

const exec = promisify(execFile)
const ENOUGH = new Error('enough was said')

/** As a module would be, with what it imports and says put in its place. */
export function openTypescript(): Language {
  const modules = new Map<string, object>()
  return {
    label: 'TypeScript',
    async run(source, token, isEndless) {
      const said: unknown[] = []
      const say = (...values: unknown[]) => {
        said.push(...values)
        if (isEndless) throw ENOUGH
      }
      const names = [...source.matchAll(/^import \{ ([^}]+) \} from '([^']+)'$/gm)]
      for (const [, , from = ''] of names) modules.set(from, await import(from))
      const body = names.reduce(
        (rest, [line, list, from]) => rest.replace(line, `const { ${list} } = modules.get('${from}')`),
        source,
      )
      const run = new AsyncFunction('modules', 'console', body) as (...given: unknown[]) => Promise<void>
      const before = process.env['ATELIER_TOKEN']
      if (token !== null) process.env['ATELIER_TOKEN'] = token
      try {
        await run(modules, { log: say })
      } catch (error) {
        if (error !== ENOUGH) throw error
      } finally {
        if (before === undefined) delete process.env['ATELIER_TOKEN']
        else process.env['ATELIER_TOKEN'] = before
      }
      return { said }
    },
    async [Symbol.asyncDispose]() {},
  }
}

const AsyncFunction = (async () => {}).constructor as new (...parts: string[]) => unknown

const PYTHON_LOOP = `import json, os, sys
class Enough(Exception):
    pass
def run(line):
    asked = json.loads(line)
    said = []
    def say(*values):
        said.extend(values)
        if asked["isEndless"]:
            raise Enough
    os.environ.pop("ATELIER_TOKEN", None)
    if asked["token"]:
        os.environ["ATELIER_TOKEN"] = asked["token"]
    try:
        exec(compile(asked["source"], "sample", "exec"), {"print": say})
    except Enough:
        pass
    except BaseException as error:
        return {"error": type(error).__name__ + ": " + str(error) + " " + str(getattr(error, "details", ""))}
    return {"said": said}
for line in sys.stdin:
    print(json.dumps(run(line), default=str), flush=True)
`

/** One interpreter for all of them: to start it for each would take longer than all the rest. */
export function openPython(python: string): Language {
  const modules = fileURLToPath(new URL('../../client/dist/python', import.meta.url))
  const env = { PYTHONPATH: modules, PYTHONDONTWRITEBYTECODE: '1' }
  const child = spawn(python, ['-W', 'error', '-c', PYTHON_LOOP], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    label: 'Python',
    async run(source, token, isEndless) {
      child.stdin.write(`${JSON.stringify({ source, token, isEndless })}\n`)
      const { value } = await lines.next()
      const told = JSON.parse(String(value)) as { said?: unknown[]; error?: string }
      if (told.said === undefined) throw new Error(told.error)
      return { said: told.said }
    },
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit')
      child.stdin.end()
      await ended
    },
  }
}

export async function openShell(): Promise<Language> {
  const folder = await mkdtemp(path.join(tmpdir(), 'atelier-samples-'))
  return {
    label: 'curl',
    async run(source, token, isEndless) {
      const env = { PATH: process.env['PATH'] ?? '', ...(token !== null && { ATELIER_TOKEN: token }) }
      // What the service says of a refusal is wanted, too.
      const script = source.replace(/\bcurl /, `curl -sS --fail-with-body ${isEndless ? '--max-time 2 ' : ''}`)
      const { stdout } = await exec('bash', ['-c', script], { cwd: folder, env }).catch((error) => {
        if (isEndless && error.code === 28) return error as { stdout: string }
        throw new Error(`${error.stdout} ${error.stderr}`)
      })
      return { said: [stdout] }
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}
