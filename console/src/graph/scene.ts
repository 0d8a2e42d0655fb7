/** A workflow, the spans of its run and the editor's positions, brought together into what is drawn. Pure but for the colours given. */
import type { EditorLayout, NodeSpan, NodeState } from '../api/job-detail.ts'
import { formatSpan } from '../text/format.ts'
import { toMarkedText } from '../text/marks.ts'
import type { DrawnNode } from './draw.ts'
import { type Box, layOut } from './layout.ts'
import type { WorkflowGraph } from './workflow-graph.ts'

export interface PlacedGraph {
  readonly ids: readonly string[]
  readonly titles: readonly string[]
  readonly classes: readonly string[]
  readonly boxes: readonly Box[]
  readonly links: readonly (readonly [number, number])[]
  readonly groups: readonly { readonly box: Box; readonly title: string }[]
}

const WIDTH = 190
const HEIGHT = 50

/** The editor's positions where it sent them for every node; else our own. */
export function placeGraph({ nodes, links }: WorkflowGraph, layout: EditorLayout | null): PlacedGraph {
  const ids = nodes.map(({ id }) => id)
  const indexOf = new Map(ids.map((id, index) => [id, index]))
  const pairs = links.flatMap(({ from, to }): [number, number][] => {
    const [a, b] = [indexOf.get(from), indexOf.get(to)]
    return a === undefined || b === undefined ? [] : [[a, b]]
  })
  const isWhole = layout !== null && ids.length > 0 && ids.every((id) => Object.hasOwn(layout.nodes, id))
  const boxes = isWhole
    ? ids.map((id) => {
        const { x, y, w, h } = layout.nodes[id]
        return { x, y, w: Math.max(80, w), h: Math.max(HEIGHT, h) }
      })
    : layOut({ sizes: ids.map(() => ({ w: WIDTH, h: HEIGHT })), links: pairs })
  return {
    ids,
    titles: nodes.map(({ id, title, classType }) => {
      const own = isWhole ? layout.nodes[id].title : null
      return toMarkedText(title ?? own ?? classType)
    }),
    classes: nodes.map(({ classType }) => toMarkedText(classType)),
    boxes,
    links: pairs,
    groups: isWhole ? layout.groups.map(({ title, ...box }) => ({ title: toMarkedText(title), box })) : [],
  }
}

export type Heat = 'state' | 'time'
export type Inks = Readonly<Record<NodeState | 'heat', string>>

interface DrawOptions {
  readonly spans: ReadonlyMap<string, NodeSpan>
  readonly heat: Heat
  readonly chosen: string | null
  readonly inks: Inks
  readonly now: number
}

export function toDrawn(graph: PlacedGraph, options: DrawOptions): readonly DrawnNode[] {
  const { spans, heat, chosen, inks, now } = options
  const times = graph.ids.map((id) => spanMs(spans.get(id), now))
  const longest = Math.max(1, ...times)
  return graph.ids.map((id, index) => {
    const span = spans.get(id)
    const state = span?.state ?? 'waiting'
    const share = heat === 'time' ? times[index] / longest : 0
    return {
      box: graph.boxes[index],
      title: graph.titles[index],
      line: toLine(span, graph.classes[index], times[index]),
      ink: inks[state],
      fill: heat === 'time' ? withAlpha(inks.heat, share * 0.55) : withAlpha(inks[state], fillOf(state)),
      isDashed: state === 'cached' || state === 'skipped',
      isChosen: id === chosen,
    }
  })
}

export function spanMs(span: NodeSpan | undefined, now: number): number {
  if (span?.started_at == null) return 0
  return Math.max(0, (span.ended_at === null ? now : Date.parse(span.ended_at)) - Date.parse(span.started_at))
}

function fillOf(state: NodeState): number {
  return state === 'failed' ? 0.22 : state === 'running' ? 0.2 : state === 'done' ? 0.1 : 0
}

const STATE_WORDS: Readonly<Record<NodeState, string>> = {
  waiting: '',
  running: '▶',
  done: '✓',
  cached: 'cached',
  failed: '✗ failed',
  interrupted: '■ stopped',
  skipped: 'not run',
}

function toLine(span: NodeSpan | undefined, classType: string, ms: number): string {
  if (span === undefined || span.state === 'waiting') return classType
  if (span.state === 'cached' || span.state === 'skipped') return `${STATE_WORDS[span.state]} · ${classType}`
  const steps =
    span.state === 'running' && span.steps !== null && span.steps > 1 ? ` ${span.step ?? 0}/${span.steps}` : ''
  return `${STATE_WORDS[span.state]}${steps} ${formatSpan(ms)} · ${classType}`
}

function withAlpha(colour: string, alpha: number): string {
  return colour.replace(/^rgb\(([^)]*)\)$/, `rgba($1, ${alpha.toFixed(3)})`)
}
