/**
 * What jobs of one workflow share: its node classes and its weights. Jobs with the same recipe differ in their values only, so a
 * search by class or weights looks at a few recipes and not at every job. The title that follows from the workflow is each job's
 * own: names may differ from job to job, and must not make recipes of their own.
 */
import { hash } from 'node:crypto'
import type { Graph } from '../../../../engine/graph/graph.ts'
import { isWeights } from '../../workflows/needs.ts'

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
