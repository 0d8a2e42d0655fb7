/**
 * The end of every build: ComfyUI starts in the new environment and must list every class that the packs promise. A pack promises
 * the classes that its `__init__.py` names in NODE_CLASS_MAPPINGS, where they can be read without running it; a pack that names none
 * must at least be loaded without a fault. What breaks is told with the pack, the module and the last lines.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isJsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import { sendOnce } from '../../../lib/outbound/exchange.ts'
import { findFreePort, startKept } from '../../../lib/processes/kept-process.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { BuildFailure } from '../../domain/environments/builder.ts'
import type { BuildTarget } from '../../domain/environments/definition.ts'
import { activated, packFolder } from './install-packages.ts'
import { pythonOf } from './release-folders.ts'
import { failureOf, homeOf, quoteLines, run, type Step } from './workshop.ts'

interface Testing {
  readonly folder: string
  readonly packs: readonly string[]
  readonly target: BuildTarget
  readonly startWithinMs: number
}

type ClassesOfPacks = Readonly<Record<string, readonly string[]>>

const LOOK_EVERY_MS = 250
const ANSWER_MS = 60_000
const MAX_ANSWER = 128 * 1024 * 1024
const MAX_LINES = 5_000

/** Throws BuildFailure. */
export async function testImports(step: Step, testing: Testing): Promise<ClassesOfPacks> {
  const { folder, packs, startWithinMs } = testing
  const promised = await readPromises(step, testing)
  const port = await findFreePort()
  const lines: string[] = []
  const server = startKept(await serverWords(step, testing, port), {
    cwd: join(folder, 'ComfyUI'),
    env: { ...step.shop.env, HOME: homeOf(step.shop), TMPDIR: step.scratch, ...activated(folder, step) },
    user: step.shop.user,
    onLine(line) {
      if (lines.push(line) > MAX_LINES) lines.shift()
      step.say(line)
    },
  })
  try {
    step.say('starting ComfyUI in the new environment')
    const listed = await untilListed({ step, port, startWithinMs, lines, ended: server.ended })
    return judge(packs, { listed, promised, lines })
  } finally {
    await server.stop()
  }
}

async function serverWords(
  { scratch, give }: Step,
  { folder, target }: Testing,
  port: number,
): Promise<readonly string[]> {
  const places = ['user', 'output', 'temp', 'input'].map(
    (name) => [`--${name}-directory`, join(scratch, 'server', name)] as const,
  )
  for (const [, place] of places) await mkdir(place, { recursive: true })
  await give(join(scratch, 'server'))
  return [
    ...[pythonOf(folder), '-s', 'main.py', '--listen', '127.0.0.1', '--port', String(port), '--disable-auto-launch'],
    ...(target.gpu === 'cpu' ? ['--cpu'] : []),
    ...places.flat(),
  ]
}

interface Waiting {
  readonly step: Step
  readonly port: number
  readonly startWithinMs: number
  readonly lines: readonly string[]
  readonly ended: Promise<{ readonly code: number | null; readonly problem: string | null }>
}

async function untilListed({
  step,
  port,
  startWithinMs,
  lines,
  ended,
}: Waiting): Promise<Readonly<Record<string, JsonValue>>> {
  const { signal } = step
  const late = AbortSignal.timeout(startWithinMs)
  const gone = new AbortController()
  const end = ended.then((how) => {
    gone.abort()
    return how
  })
  while (!gone.signal.aborted) {
    signal.throwIfAborted()
    if (late.aborted)
      throw new BuildFailure(
        'validate',
        `ComfyUI did not list its nodes within ${startWithinMs / 1000} s of its start${blame(lines)}${quoteLines(lines)}`,
      )
    const listed = await askForNodes(port, AbortSignal.any([signal, gone.signal]))
    if (listed !== null) return listed
    await sleep(LOOK_EVERY_MS, AbortSignal.any([signal, gone.signal]))
  }
  signal.throwIfAborted()
  throw failureOf('validate', `ComfyUI does not start in the new environment${blame(lines)}`, {
    ...(await end),
    lastLines: lines,
  })
}

/** null: not yet. */
async function askForNodes(port: number, signal: AbortSignal): Promise<Readonly<Record<string, JsonValue>> | null> {
  try {
    const { status, body } = await sendOnce(
      { url: `http://127.0.0.1:${port}/object_info`, method: 'GET', headers: {}, wantsBody: true },
      { totalTimeMs: ANSWER_MS, maxBytes: MAX_ANSWER, signal },
    )
    const told: unknown = status === 200 ? JSON.parse(body.toString('utf8')) : null
    return isJsonObject(told) ? told : null
  } catch {
    return null
  }
}

interface Findings {
  readonly listed: Readonly<Record<string, JsonValue>>
  readonly promised: ClassesOfPacks
  readonly lines: readonly string[]
}

function judge(packs: readonly string[], { listed, promised, lines }: Findings): ClassesOfPacks {
  const found: Record<string, string[]> = Object.fromEntries(packs.map((pack) => [pack, []]))
  for (const [name, about] of Object.entries(listed)) {
    const module = isJsonObject(about) && typeof about['python_module'] === 'string' ? about['python_module'] : ''
    const [, pack = ''] = /^custom_nodes\.(.+)$/.exec(module) ?? []
    if (Object.hasOwn(found, pack)) found[pack]?.push(name)
  }
  for (const pack of packs) {
    const trouble = importTrouble(lines, pack)
    if (trouble !== null)
      throw new BuildFailure(
        'validate',
        `pack ${pack}: its import failed: ${trouble.reason}; correct the pack, or add what it misses to its requirements.txt${quoteLines(trouble.lines)}`,
      )
    const missing = (promised[pack] ?? []).filter((name) => !Object.hasOwn(listed, name))
    if (missing.length > 0) {
      const shown = missing.slice(0, 10).join(', ')
      throw new BuildFailure(
        'validate',
        `pack ${pack}: ComfyUI does not list ${shown}, which the module custom_nodes.${pack} promises; correct the pack${quoteLines(lines)}`,
      )
    }
  }
  return Object.fromEntries(Object.entries(found).map(([pack, classes]) => [pack, classes.toSorted()]))
}

interface Trouble {
  readonly reason: string
  readonly lines: readonly string[]
}

/** In ComfyUI's own words: `Cannot import <folder> module for custom nodes: <reason>`, after the traceback. */
function importTrouble(lines: readonly string[], pack: string): Trouble | null {
  for (const [index, line] of lines.entries()) {
    const [, folder = '', reason = ''] = /Cannot import (.+?) module for custom nodes:\s*(.*)$/.exec(line) ?? []
    if (folder.split(/[/\\]/).at(-1) !== pack) continue
    const start = lines.slice(0, index).findLastIndex((each) => each.startsWith('Traceback'))
    return {
      reason: `module custom_nodes.${pack}: ${reason || 'no reason was told'}`,
      lines: start === -1 ? [line] : lines.slice(start, index + 1),
    }
  }
  return null
}

/** Which pack was at work when the server ended: the last one that a traceback names. */
function blame(lines: readonly string[]): string {
  const named = lines.findLast((line) => /custom_nodes[/\\][^/\\"]+/.test(line))
  const pack = /custom_nodes[/\\]([^/\\"]+)/.exec(named ?? '')?.[1]
  return pack === undefined ? '' : `, at pack ${pack}`
}

// Reads the keys of dictionaries that stand as such in the source. Whatever is computed is not a promise.
const SCAN = `
import ast, json, os, sys

def keys_of(path, depth=0):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return []
    found = []
    for node in tree.body:
        value = None
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "NODE_CLASS_MAPPINGS" for t in node.targets):
            value = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "NODE_CLASS_MAPPINGS":
            value = node.value
        elif isinstance(node, ast.ImportFrom) and node.level == 1 and node.module and depth < 3:
            if any(a.name == "NODE_CLASS_MAPPINGS" and a.asname in (None, "NODE_CLASS_MAPPINGS") for a in node.names):
                base = os.path.join(os.path.dirname(path), *node.module.split("."))
                file = base + ".py" if os.path.exists(base + ".py") else os.path.join(base, "__init__.py")
                found = keys_of(file, depth + 1)
        if isinstance(value, ast.Dict):
            found = [k.value for k in value.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
    return found

print(json.dumps({name: keys_of(os.path.join(folder, "__init__.py")) for name, folder in json.load(open(sys.argv[1])).items()}))
`

async function readPromises(step: Step, { folder, packs }: Testing): Promise<ClassesOfPacks> {
  const [script, list] = [join(step.scratch, 'scan.py'), join(step.scratch, 'packs.json')]
  await writeFile(script, SCAN)
  await writeFile(list, JSON.stringify(Object.fromEntries(packs.map((pack) => [pack, packFolder(folder, pack)]))))
  const ran = await run(step, [pythonOf(folder), '-s', script, list], { cwd: step.scratch, isQuiet: true })
  if (ran.code !== 0) throw failureOf('validate', 'the packs cannot be read by the new environment', ran)
  return JSON.parse(ran.stdout) as ClassesOfPacks
}
