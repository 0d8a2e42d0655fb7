/**
 * What is kept of a submit, to show and to find the job later: the key that it came with, the files that its graph names, where
 * an editor had put its nodes, and its recipe. Bounded, and without a word that the run needs: what the run needs goes with its end.
 */

import { hash } from 'node:crypto'
import type { Graph } from '../../../../engine/graph/graph.ts'
import { NumberText } from '../../../../lib/json/lossless-json.ts'
import { readTraceContext, type TraceContext, toTraceparent } from '../../../../lib/tracing/trace-context.ts'
import { isWeights } from '../../workflows/needs.ts'
import type { JobInput, Submission } from '../job.ts'

export interface JobOrigin {
  readonly idempotencyKey: string | null
  readonly inputs: readonly JobInput[]
  /** There were more files than are listed. */
  readonly areInputsCut: boolean
  readonly layout: GraphLayout | null
  /** The trace that the submit belonged to; null: none. */
  readonly trace: TraceContext | null
  /** Of a call of an endpoint: its inputs as they were used, as JSON text; null: it was no such call, or they were too long. */
  readonly endpointInputs: string | null
}

export const NO_ORIGIN: JobOrigin = {
  ...{ idempotencyKey: null, inputs: [], areInputsCut: false, layout: null, trace: null, endpointInputs: null },
}

const MAX_INPUTS = 200
const MAX_NAME_LENGTH = 500

/** null: there is nothing to keep. */
export function toOrigin({ inputs, ...origin }: Omit<JobOrigin, 'areInputsCut'>): JobOrigin | null {
  if (inputs.length === 0 && Object.values(origin).every((part) => part === null)) return null
  const kept = inputs.filter(({ name }) => name.length <= MAX_NAME_LENGTH).slice(0, MAX_INPUTS)
  return { ...origin, inputs: kept, areInputsCut: kept.length < inputs.length }
}

/** As it is stored: what is not there is left out, and lists are shorter than objects. */
interface StoredOrigin {
  readonly key?: string
  readonly inputs?: readonly (readonly [name: string, hash: string, sizeBytes: number, contentType: string])[]
  readonly areInputsCut?: true
  readonly layout?: GraphLayout
  readonly trace?: StoredTrace
  readonly call?: string
}

/** As its two headers were. */
type StoredTrace = readonly [traceparent: string, tracestate?: string]

export function writeOrigin(origin: JobOrigin): string {
  const { idempotencyKey, inputs, areInputsCut, layout, trace, endpointInputs } = origin
  // With traces on, most jobs have this alone. It has no letter that JSON writes otherwise.
  const isTraceAlone =
    trace !== null && idempotencyKey === null && inputs.length === 0 && layout === null && endpointInputs === null
  if (isTraceAlone && trace.state === '') return `{"trace":["${toTraceparent(trace)}"]}`
  const stored: StoredOrigin = {
    ...(idempotencyKey !== null && { key: idempotencyKey }),
    ...(inputs.length > 0 && {
      inputs: inputs.map(({ name, hash, sizeBytes, contentType }) => [name, hash, sizeBytes, contentType] as const),
    }),
    ...(areInputsCut && { areInputsCut }),
    ...(layout !== null && { layout }),
    ...(trace !== null && { trace: writeTrace(trace) }),
    ...(endpointInputs !== null && { call: endpointInputs }),
  }
  return JSON.stringify(stored)
}

export function readOrigin(text: string | null): JobOrigin {
  if (text === null) return NO_ORIGIN
  const {
    key = null,
    inputs = [],
    areInputsCut = false,
    layout = null,
    trace,
    call = null,
  } = JSON.parse(text) as StoredOrigin
  return {
    idempotencyKey: key,
    inputs: inputs.map(([name, hash, sizeBytes, contentType]) => ({ name, hash, sizeBytes, contentType })),
    areInputsCut,
    layout,
    trace: trace === undefined ? null : readTraceContext(...trace),
    endpointInputs: call,
  }
}

function writeTrace(trace: TraceContext): StoredTrace {
  return trace.state === '' ? [toTraceparent(trace)] : [toTraceparent(trace), trace.state]
}

/** Where an editor had put the nodes of a workflow, read from what it sent along. Nothing in it is trusted, and all of it is bounded. */
interface PlacedNode {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
  readonly title: string | null
  readonly color: string | null
}

interface PlacedGroup extends Omit<PlacedNode, 'title'> {
  readonly title: string
}

export interface GraphLayout {
  /** By the id of the node. */
  readonly nodes: Readonly<Record<string, PlacedNode>>
  readonly groups: readonly PlacedGroup[]
}

type Json = unknown

const MAX_NODES = 10_000
const MAX_GROUPS = 1000
const MAX_TITLE = 200
// Of an id and of a node without its title, in JSON.
const MAX_ID = 100
const NODE_LENGTH = 80
// Kept with every such job: a layout that is larger is not.
const MAX_KEPT_LENGTH = 262_144

/** `extraData` as it was sent. null: nothing was sent along, or nothing that says where nodes are. */
function readLayout(extraData: Json): GraphLayout | null {
  const workflow = member(member(extraData, 'extra_pnginfo'), 'workflow')
  const nodes = nodesOf(extraData).slice(0, MAX_NODES)
  const placed = nodes.flatMap((node): [string, PlacedNode][] => {
    const [x, y] = toNumbers(member(node, 'pos'), 2)
    const id = member(node, 'id')
    if (x === undefined || y === undefined || !isId(id)) return []
    const [w = 210, h = 100] = toNumbers(member(node, 'size'), 2)
    return [[String(id), { x, y, w, h, title: toText(member(node, 'title')), color: toColor(member(node, 'color')) }]]
  })
  if (placed.length === 0) return null
  const groups = listOf(member(workflow, 'groups')).slice(0, MAX_GROUPS).flatMap(toGroup)
  return { nodes: Object.fromEntries(placed), groups }
}

/** A submission keeps what its editor sent; of any other submit the layout alone is kept. null: no editor said where the nodes are. */
export function shownLayout(submission: Submission | null, { layout }: JobOrigin): GraphLayout | null {
  return layout ?? (submission === null ? null : readLayout(parseOrNull(submission.extraData)))
}

function parseOrNull(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** As a job keeps it; null also where it would be too large, which is known before it is read. */
export function readKeptLayout(extraData: Json): GraphLayout | null {
  return nodesOf(extraData).length * NODE_LENGTH > MAX_KEPT_LENGTH ? null : toKeptLayout(readLayout(extraData))
}

function nodesOf(extraData: Json): Json[] {
  return listOf(member(member(member(extraData, 'extra_pnginfo'), 'workflow'), 'nodes'))
}

/** null where it is too large to be kept with a job. */
export function toKeptLayout(layout: GraphLayout | null): GraphLayout | null {
  if (layout === null) return null
  const parts = [...Object.entries(layout.nodes), ...layout.groups.map((group) => ['', group] as const)]
  const length = parts.reduce((sum, [id, { title }]) => sum + NODE_LENGTH + id.length + (title?.length ?? 0), 0)
  return length <= MAX_KEPT_LENGTH ? layout : null
}

function isId(id: Json): id is number | bigint | string {
  return typeof id === 'number' || typeof id === 'bigint' || (typeof id === 'string' && id.length <= MAX_ID)
}

function toGroup(group: Json): PlacedGroup[] {
  const [x, y, w, h] = toNumbers(member(group, 'bounding'), 4)
  if (x === undefined || y === undefined || w === undefined || h === undefined) return []
  return [{ title: toText(member(group, 'title')) ?? '', x, y, w, h, color: toColor(member(group, 'color')) }]
}

function member(value: Json, name: string): Json {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, Json>)[name]
    : undefined
}

function listOf(value: Json): Json[] {
  return Array.isArray(value) ? value : []
}

/** Editors write a pair as a list, or as an object with the names 0 and 1. */
function toNumbers(value: Json, count: number): number[] {
  const list = Array.isArray(value) ? value : Array.from({ length: count }, (_, index) => member(value, String(index)))
  const numbers = list
    .slice(0, count)
    .map((each) => (each instanceof NumberText ? each.value : typeof each === 'bigint' ? Number(each) : each))
  return numbers.every((each) => typeof each === 'number' && Number.isFinite(each)) ? (numbers as number[]) : []
}

function toText(value: Json): string | null {
  return typeof value === 'string' ? value.slice(0, MAX_TITLE).toWellFormed() : null
}

const COLOR = /^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i

function toColor(value: Json): string | null {
  return typeof value === 'string' && COLOR.test(value) ? value : null
}

// What jobs of one workflow share: its node classes and its weights. Jobs with the same recipe differ in their values only, so a
// search by class or weights looks at a few recipes and not at every job. The title that follows from the workflow is each job's
// own: names may differ from job to job, and must not make recipes of their own.

export interface JobRecipe {
  /** Of the terms. */
  readonly key: string
  /** Of the job. */
  readonly title: string
  /** Lines `c:…` for classes and `w:…` for weights, with a line feed before and behind each. */
  readonly terms: string
}

const KEY_LENGTH = 16
const TITLE_LENGTH = 80
// A recipe is a handful of names; whatever a graph has beyond these bounds is not searched for.
const MAX_TERMS = 400
const MAX_TERM_LENGTH = 200
const MAX_LENGTH = 16_000

/** `name`: what the editor calls the workflow; null where nothing was said. */
export function toRecipe(graph: Graph, name: string | null): JobRecipe {
  const classes = new Set<string>()
  const weights = new Set<string>()
  let prefix: string | null = null
  for (const { classType, inputs } of graph.values()) {
    classes.add(classType)
    for (const [input, value] of Object.entries(inputs)) {
      if (typeof value !== 'string') continue
      if (isWeights(value)) weights.add(value)
      else if (input === 'filename_prefix') prefix ??= titleOfPrefix(value)
    }
  }
  const title = (name === null ? '' : clean(name)) || prefix || tellingClass([...classes])
  const terms = toTerms(classes, weights)
  return { key: keyOf(terms), title, terms }
}

// Jobs of one workflow come in rows: what the last one had is kept.
let last = { terms: '', key: '' }
let lastPrefix = { value: '', title: '' }

function titleOfPrefix(value: string): string {
  if (lastPrefix.value !== value) lastPrefix = { value, title: withoutNumbers(value) }
  return lastPrefix.title
}

function keyOf(terms: string): string {
  if (last.terms !== terms || last.key === '')
    last = { terms, key: hash('sha256', terms, 'base64url').slice(0, KEY_LENGTH) }
  return last.key
}

/** The line that stands for a class or a weights file among the terms. */
export function toTerm(kind: 'class' | 'weights', name: string): string {
  return `\n${kind === 'class' ? 'c' : 'w'}:${name}\n`
}

export function readTerms(terms: string): { readonly classes: readonly string[]; readonly weights: readonly string[] } {
  const lines = terms.split('\n')
  const named = (mark: string) => lines.filter((line) => line.startsWith(mark)).map((line) => line.slice(mark.length))
  return { classes: named('c:'), weights: named('w:') }
}

/** What its submitter called it, or else what follows from its workflow. */
export function titleOf(metadata: Readonly<Record<string, string>>, recipeTitle: string | null): string {
  for (const key of ['name', 'title', ''])
    if (Object.hasOwn(metadata, key) && clean(metadata[key] ?? '') !== '') return clean(metadata[key] ?? '')
  return recipeTitle ?? ''
}

function toTerms(classes: ReadonlySet<string>, weights: ReadonlySet<string>): string {
  const lines = [...[...classes].sort().map((name) => `c:${name}`), ...[...weights].sort().map((name) => `w:${name}`)]
  let length = 0
  const kept = lines
    .filter((line) => line.length <= MAX_TERM_LENGTH && !line.includes('\n'))
    .slice(0, MAX_TERMS)
    .filter((line) => {
      length += line.length + 1
      return length < MAX_LENGTH
    })
  return kept.length === 0 ? '' : `\n${kept.join('\n')}\n`
}

/** Numbers, ids and folders tell single jobs apart; a title is what they have in common. */
function withoutNumbers(prefix: string): string {
  const last = prefix.replaceAll('\\', '/').split('/').at(-1) ?? ''
  const words = last.replaceAll(/%[^%]*%/g, ' ').split(/[\s_-]+/)
  return clean(words.filter((word) => !/\d/.test(word)).join(' '))
}

const COMMON = /^(?:Load|Save|Preview|Empty|Primitive|CLIP|VAE|Conditioning|Note|Reroute|Get|Set|String|Int|Float)/
const SAMPLER = /sampler/i

/** A class that few other workflows have says more than loaders and savers do. */
function tellingClass(classes: readonly string[]): string {
  const own = classes.filter((name) => !COMMON.test(name))
  return clean(own.find((name) => !SAMPLER.test(name)) ?? own[0] ?? classes.at(-1) ?? '')
}

// Control characters and bidirectional formatting can disguise a text on a screen.
const DISGUISE = /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+/gu

function clean(text: string): string {
  const plain = text
    .slice(0, 4 * TITLE_LENGTH)
    .toWellFormed()
    .replaceAll(DISGUISE, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
  return [...plain].slice(0, TITLE_LENGTH).join('').trim()
}
