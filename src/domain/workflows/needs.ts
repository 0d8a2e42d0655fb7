/**
 * What a graph needs of an engine: its node classes, and those choices that not every engine offers, above all weights. Graphs
 * with the same needs share a key: they wait in one lane of the queue, and which engines can run them is found out per lane.
 */
import { hash } from 'node:crypto'
import { explainAbsent } from '../../../engine/graph/absent-classes.ts'
import type { Graph, GraphNode } from '../../../engine/graph/graph.ts'
import { type DeclaredInput, declaredInputs, readNodeSpec } from '../../../engine/graph/input-specs.ts'
import type { NodeCatalog } from '../../../engine/graph/node-catalog.ts'
import { choicesOf } from '../../../engine/graph/validate/check-node.ts'

/** A value that an input of a class must offer. */
type Choice = readonly [classType: string, input: string, value: string]

interface Needs {
  readonly key: string
  readonly classes: readonly string[]
  readonly choices: readonly Choice[]
  /** The choices that are weights, by name: what an engine has loaded after it ran such a graph. */
  readonly weights: readonly string[]
}

/** One thing that an engine does not have, and the node that asks for it. */
export interface Lack {
  readonly nodeId: string
  readonly classType: string
  /** The input whose value is missing; null when the class itself is. */
  readonly input: string | null
  readonly value: string | null
  /** Another engine has it, but lacks something else. */
  readonly isElsewhere: boolean
  /** Of a class: why no engine has it, where that is known. */
  readonly hint?: string | null
}

/** The same, and of weights where they belong and who has them. */
export interface PlacedLack extends Lack {
  /** null: what is missing is no file of weights. */
  readonly missing: { readonly folder: string | null; readonly engines: readonly string[] } | null
}

const KEY_LENGTH = 20

/** `catalogs`: of all engines that are known. A choice that each of them offers is no need, unless it is weights. */
export function needsOf(graph: Graph, catalogs: readonly NodeCatalog[]): Needs {
  const classes = new Set<string>()
  const choices = new Map<string, Choice>()
  const weights = new Set<string>()
  for (const node of graph.values()) {
    classes.add(node.classType)
    for (const [input, value] of chosenValues(node, catalogs)) {
      const areWeights = isWeights(value)
      if (areWeights) weights.add(value)
      const offering = catalogs.filter((catalog) => offers(catalog, [node.classType, input, value]))
      if (!areWeights && offering.length === catalogs.length) continue
      if (offering.length === 0 && judgesItself(catalogs, node.classType)) continue
      choices.set(`${node.classType}\0${input}\0${value}`, [node.classType, input, value])
    }
  }
  const sorted = { classes: [...classes].sort(), choices: [...choices.keys()].sort().map((id) => choices.get(id)!) }
  return { key: keyOf(sorted), ...sorted, weights: [...weights].sort() }
}

/** A value that no catalog lists may still be valid: a class that judges itself decides, on whichever engine. */
function judgesItself(catalogs: readonly NodeCatalog[], classType: string): boolean {
  return catalogs.some((catalog) => catalog.judgesItself?.(classType) === true)
}

function keyOf(needs: Pick<Needs, 'classes' | 'choices'>): string {
  return hash('sha256', JSON.stringify([needs.classes, needs.choices]), 'base64url').slice(0, KEY_LENGTH)
}

/** Whether an engine with this catalog has everything. */
export function meets(catalog: NodeCatalog, { classes, choices }: Needs): boolean {
  return (
    classes.every((classType) => catalog.find(classType) !== null) && choices.every((choice) => offers(catalog, choice))
  )
}

/** What an engine with this catalog does not have, node by node, and whether any of the others does. */
export function findLacks(graph: Graph, catalog: NodeCatalog, others: readonly NodeCatalog[]): Lack[] {
  const lacks: Lack[] = []
  const isElsewhere = (choice: Choice) => others.some((other) => offers(other, choice))
  for (const [nodeId, node] of graph) {
    const { classType } = node
    if (catalog.find(classType) === null) {
      const isKnown = others.some((other) => other.find(classType) !== null)
      const hint = explainAbsent(classType, [catalog, ...others])
      lacks.push({ nodeId, classType, input: null, value: null, isElsewhere: isKnown, hint })
      continue
    }
    for (const [input, value] of chosenValues(node, [catalog])) {
      const choice: Choice = [classType, input, value]
      if (offers(catalog, choice)) continue
      if (!isElsewhere(choice) && judgesItself([catalog], classType)) continue
      lacks.push({ nodeId, classType, input, value, isElsewhere: isElsewhere(choice) })
    }
  }
  return lacks
}

/** The constants of a node that are to be picked from a list, as the first catalog that knows the class declares them. */
function chosenValues(node: GraphNode, catalogs: readonly NodeCatalog[]): [input: string, value: string][] {
  for (const catalog of catalogs) {
    const definition = catalog.find(node.classType)
    if (definition === null) continue
    const selfChecked = catalog.selfCheckedInputs(node.classType)
    return declaredInputs(readNodeSpec(definition), node.inputs).flatMap((input): [string, string][] => {
      if (!isPicked(input) || selfChecked.includes(input.path) || !Object.hasOwn(node.inputs, input.path)) return []
      const value = node.inputs[input.path]
      return typeof value === 'string' ? [[input.path, value]] : []
    })
  }
  return []
}

/** A file of the caller is brought along, so no engine needs to have it. */
function isPicked(input: DeclaredInput): boolean {
  return input.upload === null && choicesOf(input) !== null
}

/** An input that is declared differently, or not at all, is left to the engine's own judgement. */
function offers(catalog: NodeCatalog, [classType, path, value]: Choice): boolean {
  const definition = catalog.find(classType)
  if (definition === null) return false
  const input = readNodeSpec(definition).inputs.find((declared) => declared.path === path)
  const choices = input === undefined ? null : choicesOf(input)
  return choices === null || choices.includes(value)
}

const WEIGHTS = /\.(?:safetensors|sft|ckpt|pt|pt2|pth|bin|pkl|gguf|onnx)$/i

/** Whether a value that was picked from a list names weights, judged by the name alone. */
export function isWeights(name: string): boolean {
  return WEIGHTS.test(name)
}

export interface Missing {
  readonly classes: readonly { readonly classType: string; readonly nodeIds: readonly string[] }[]
  readonly weights: readonly { readonly name: string; readonly nodeId: string; readonly input: string }[]
}

/** What a graph needs and no engine has: whole classes, and weights. */
export function findMissing(graph: Graph, catalog: NodeCatalog): Missing {
  const classes = new Map<string, string[]>()
  const weights: { name: string; nodeId: string; input: string }[] = []
  for (const { nodeId, classType, input, value } of findLacks(graph, catalog, [])) {
    if (input === null) {
      const nodeIds = classes.get(classType)
      if (nodeIds === undefined) classes.set(classType, [nodeId])
      else nodeIds.push(nodeId)
    } else if (value !== null && isWeights(value)) weights.push({ name: value, nodeId, input })
  }
  return { classes: [...classes].map(([classType, nodeIds]) => ({ classType, nodeIds })), weights }
}

// The known lanes and what their jobs need: a lane holds the waiting jobs that need the same classes and weights of an engine.
// Which engine serves which lane is worked out once per lane and catalog. There are as many lanes as kinds of graphs; beyond
// the bound the least recently learnt one is forgotten, and learnt again from the store when its turn comes.

/** The lane of jobs that were accepted before their needs were known: every engine may try them. */
export const ANY_LANE = '*'
/** Jobs have no lane in a pool in which every engine runs everything. */
export const NO_LANE = ''

export interface LaneTable {
  /** How many it keeps. */
  readonly maxLanes: number
  /** Remembers what the jobs of a lane need. */
  learn(lane: string, needs: Needs): void
  needsOf(lane: string): Needs | null
  lanes(): readonly string[]
  /** The lanes that an engine with this catalog can serve. */
  servedBy(catalog: NodeCatalog): readonly string[]
  /** A run of the lane took so long on its engine. */
  noteRun(lane: string, ms: number): void
  /** How long the next run of the lane takes: a mean in which late runs weigh more; of a lane without runs that of all. */
  foreseenMs(lane: string): number
}

/** Of the newest run in the mean. */
const NEWEST_WEIGHT = 0.1
/** Until anything has run: the order of a picture on a card. */
const FIRST_RUN_MS = 10_000

/** Which of the lanes of one moment an engine serves. */
interface Verdicts {
  readonly version: number
  readonly isServed: ReadonlyMap<string, boolean>
  readonly lanes: readonly string[]
}

export function createLaneTable({ maxLanes = 1000 } = {}): LaneTable {
  const known = new Map<string, Needs | null>([[ANY_LANE, null]])
  // Per catalog object: a refreshed catalog is a new one.
  const verdicts = new WeakMap<NodeCatalog, Verdicts>()
  const meansMs = new Map<string, number>()
  let meanOfAllMs = FIRST_RUN_MS
  let version = 0

  /** Only lanes that are new to a catalog are held against it. */
  function judge(catalog: NodeCatalog): Verdicts {
    const before = verdicts.get(catalog)
    if (before?.version === version) return before
    const isServed = new Map(
      [...known].map(([lane, needs]) => [
        lane,
        before?.isServed.get(lane) ?? (needs === null || meets(catalog, needs)),
      ]),
    )
    const lanes = [...known.keys()].filter((lane) => isServed.get(lane) === true)
    const judged = { version, isServed, lanes }
    verdicts.set(catalog, judged)
    return judged
  }

  return {
    maxLanes,
    learn(lane, needs) {
      const isNew = !known.has(lane)
      known.delete(lane)
      known.set(lane, needs)
      if (known.size > maxLanes) {
        const oldest = [...known.keys()].find((each) => each !== ANY_LANE && each !== lane)
        if (oldest !== undefined) {
          known.delete(oldest)
          meansMs.delete(oldest)
        }
      }
      if (isNew) version += 1
    },
    needsOf: (lane) => known.get(lane) ?? null,
    lanes: () => [...known.keys()],
    servedBy: (catalog) => judge(catalog).lanes,
    noteRun(lane, ms) {
      const towards = (mean: number) => mean + (ms - mean) * NEWEST_WEIGHT
      meanOfAllMs = towards(meanOfAllMs)
      if (known.has(lane)) meansMs.set(lane, towards(meansMs.get(lane) ?? ms))
    },
    foreseenMs: (lane) => Math.round(meansMs.get(lane) ?? meanOfAllMs),
  }
}
