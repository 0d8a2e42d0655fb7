/** Imports node modules, in a thread of theirs, and finds the nodes that they export. */

import type { ModuleFile } from './custom-nodes.ts'
import { type NodeDeclaration, readDeclaration } from './declaration.ts'
import type { CustomNode, RunContext } from './nodes-api.ts'

/** A node with its types erased: its declaration says what `run` takes and gives. */
export interface LoadedNode {
  readonly declaration: NodeDeclaration
  run(inputs: Readonly<Record<string, unknown>>, context: RunContext): unknown
}

const MARK = Symbol.for('atelier.node')

function isNode(value: unknown): value is CustomNode & Pick<LoadedNode, 'run'> {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[MARK] === true
}

/** Throws whatever the module throws, or an Error that says what is wrong with its nodes. */
export async function loadModule({ url }: ModuleFile): Promise<LoadedNode[]> {
  const exported: Readonly<Record<string, unknown>> = await import(url)
  // A default export that is also a named one is one node.
  const nodes = [...new Set(Object.values(exported))].filter(isNode)
  if (nodes.length === 0) {
    throw new Error('it exports no node: export what defineNode returns, and put other files into a subfolder')
  }
  return nodes.map((node) => ({
    declaration: readDeclaration(node),
    run: (inputs, context) => node.run(inputs, context),
  }))
}

/**
 * What a node prints, on its way to the log of its run. Lines are gathered into a few messages, and a call can print only so
 * much: megabytes cost their own thread some time and nobody else anything.
 */
interface Printer {
  print(text: string): void
  /** Sends what is left. */
  close(): void
}

// As much as the service keeps of a whole job.
const CALL_LIMIT = 262_144
const SEND_LENGTH = 16_384
const SEND_EVERY_MS = 50
const CUT_NOTE = '\n(this node printed too much; the rest is left out)\n'

export function createPrinter(send: (text: string) => void): Printer {
  let room = CALL_LIMIT
  let gathered = ''
  let sentAt = Number.NEGATIVE_INFINITY
  let scheduled: NodeJS.Immediate | null = null

  function flush(): void {
    if (scheduled !== null) clearImmediate(scheduled)
    scheduled = null
    if (gathered === '') return
    send(gathered)
    gathered = ''
    sentAt = performance.now()
  }

  return {
    print(text) {
      if (room <= 0 || text === '') return
      gathered += text.slice(0, room)
      room -= text.length
      if (room <= 0) gathered += CUT_NOTE
      // A loop that never yields lets no timer run, so the clock is looked at here as well.
      if (gathered.length >= SEND_LENGTH || performance.now() - sentAt >= SEND_EVERY_MS) flush()
      else scheduled ??= setImmediate(flush)
    },
    close: flush,
  }
}

/** Everything that the code of this thread writes to standard output or standard error goes to `print`. */
export function redirectOutput(print: (text: string) => void): void {
  function write(chunk: unknown, encoding?: unknown, done?: unknown): boolean {
    print(typeof chunk === 'string' ? chunk : chunk instanceof Uint8Array ? Buffer.from(chunk).toString() : '')
    const callback = typeof encoding === 'function' ? encoding : done
    if (typeof callback === 'function') callback()
    return true
  }
  process.stdout.write = write
  process.stderr.write = write
}
