/**
 * Custom nodes when an engine is opened: their folders are read, their modules loaded in a thread of their own, and what they
 * declare is checked. Anything wrong is one line that names the file, and no engine. Their code never runs on the caller's thread.
 */

import { type Dirent, readdirSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { type MessagePort, Worker } from 'node:worker_threads'
import { toHeapLimits } from '../../lib/threads/garbage.ts'
import type { CallSurroundings } from '../node/node-call.ts'
import type { MemoryLine, ToThread } from '../threads/protocol.ts'
import { type CustomNodes, type ModuleFile, NO_CUSTOM_NODES } from './custom-nodes.ts'
import type { NodeDeclaration } from './declaration.ts'
import type { DescribeThreadData, FromDescribe } from './describe-thread.ts'
import type { SourceTexts } from './module-hooks.ts'

// Which files of the given folders are node modules: every .ts, .js and .mjs directly inside, in the order of their names.

/** Why custom nodes cannot be loaded. The message is one line for the operator: it names the file and what to do. */
export class NodeModuleError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'NodeModuleError'
  }
}

const MODULE_NAME = /^[^.].*\.(ts|js|mjs)$/
const TYPES_ONLY = /\.d\.ts$/
// Every module is loaded in every thread; a folder with more than this was named by mistake.
const MAX_MODULES = 1000

function readFolder<T>(folder: string, read: (folder: string) => T): T {
  try {
    return read(folder)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unreadable'
    throw new NodeModuleError(`the nodes folder ${folder} cannot be read (${code}); correct --nodes or create it`)
  }
}

/** As the module loader will name them, each once. */
function resolveFolders(folders: readonly string[]): readonly string[] {
  return [...new Set(folders.map((folder) => readFolder(folder, (name) => realpathSync(name))))]
}

function findModules(folders: readonly string[]): readonly ModuleFile[] {
  const files = folders.flatMap((folder) =>
    readFolder(folder, (name): Dirent[] => readdirSync(name, { withFileTypes: true }))
      .filter((entry) => !entry.isDirectory() && MODULE_NAME.test(entry.name) && !TYPES_ONLY.test(entry.name))
      .map((entry) => path.join(folder, entry.name))
      .sort(),
  )
  if (files.length > MAX_MODULES) {
    throw new NodeModuleError(`the nodes folders hold ${files.length} modules; at most ${MAX_MODULES} are allowed`)
  }
  return files.map((file) => ({ path: file, url: pathToFileURL(file).href }))
}

interface DescribeOptions {
  /** Class types that are taken. */
  isTaken(classType: string): boolean
  /** For all modules together. */
  readonly loadTimeoutMs: number
}

const MAX_REASON_LENGTH = 1000
const HEAP_MB = 512

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim().slice(0, MAX_REASON_LENGTH)
}

interface Described {
  readonly module: ModuleFile
  readonly nodes: readonly NodeDeclaration[]
}

/** Throws NodeModuleError. Folders are absolute paths. */
export async function describeModules(folders: readonly string[], options: DescribeOptions): Promise<CustomNodes> {
  const resolved = resolveFolders(folders)
  const modules = findModules(resolved)
  if (modules.length === 0) return NO_CUSTOM_NODES
  const folderUrls = resolved.map((folder) => pathToFileURL(path.join(folder, '/')).href)
  const { described, sources } = await askThread({ folders: folderUrls, modules }, options.loadTimeoutMs)
  refuseClashes(described, options.isTaken)
  return { folders: folderUrls, modules, sources, declarations: described.flatMap(({ nodes }) => nodes) }
}

async function askThread(data: DescribeThreadData, timeoutMs: number) {
  // Its output is dropped, because standard output belongs to the program, and it gets no variables, which may be secrets.
  const worker = new Worker(new URL('./describe-thread.ts', import.meta.url), {
    workerData: data,
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: toHeapLimits(HEAP_MB),
  })
  worker.stdout.resume()
  worker.stderr.resume()
  const described: Described[] = []
  const ended = Promise.withResolvers<SourceTexts>()
  let current = data.modules[0]
  const fail = (reason: string) =>
    ended.reject(new NodeModuleError(`the node module ${current.path} does not load: ${oneLine(reason)}`))
  worker.on('message', (message: FromDescribe) => {
    if (message.type === 'done') return ended.resolve(message.sources)
    current = message.module
    if (message.type === 'loaded') described.push({ module: message.module, nodes: message.nodes })
    else if (message.type === 'failed') fail(message.reason)
  })
  worker.on('error', (error) => fail(error.message))
  worker.on('exit', () => fail('it ended the thread that loads it'))
  const timer = setTimeout(() => fail(`it did not finish within ${timeoutMs / 1000} s`), timeoutMs)
  try {
    return { sources: await ended.promise, described }
  } finally {
    clearTimeout(timer)
    await worker.terminate()
  }
}

function refuseClashes(described: readonly Described[], isTaken: DescribeOptions['isTaken']): void {
  const owners = new Map<string, ModuleFile>()
  for (const { module, nodes } of described) {
    for (const { classType } of nodes) {
      const owner = owners.get(classType)
      if (owner !== undefined) {
        const where = owner === module ? `twice in ${module.path}` : `in ${owner.path} and in ${module.path}`
        throw new NodeModuleError(`the node ${classType} is defined ${where}; rename one of them`)
      }
      if (isTaken(classType)) {
        throw new NodeModuleError(
          `the node module ${module.path} defines ${classType}, which is a built-in node; choose another classType`,
        )
      }
      owners.set(classType, module)
    }
  }
}

// What the engine thread and the threads of custom nodes say to each other, over a channel that node code never sees.

/** The first message to a thread, over its public port. */
export interface NodeThreadStart {
  readonly port: MessagePort
  readonly memory: MemoryLine
  readonly nodes: Omit<CustomNodes, 'declarations'>
  /** What its buffers may occupy. */
  readonly bufferBytes: number
}

export type ToNodeThread = ToThread<Pick<CallSurroundings, 'nodeId'>>
