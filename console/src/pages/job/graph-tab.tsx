/** The graph of the job, lit by its run, and the same nodes as a table. */
import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { JobDetail } from '../../api/job-detail.ts'
import { getLayout, getWorkflow } from '../../api/jobs.ts'
import { Loaded } from '../../components/loaded.tsx'
import { Skeleton } from '../../components/skeleton.tsx'
import { GraphCanvas, type GraphHandle } from '../../graph/graph-canvas.tsx'
import { type Heat, placeGraph } from '../../graph/scene.ts'
import { readWorkflow, type WorkflowGraph } from '../../graph/workflow-graph.ts'
import { useKeys } from '../../keys/keys.ts'
import { decode, hash, setHash } from '../../routes.ts'
import { second } from '../../state/clock.ts'
import { useResource } from '../../state/resource.ts'
import { plural } from '../../text/format.ts'
import { NodePanel } from './node-panel.tsx'
import { NodeTable } from './node-table.tsx'
import type { WatchedJob } from './use-job.ts'

interface GraphTabProps {
  readonly detail: JobDetail
  readonly watched: WatchedJob
}

export function GraphTab({ detail, watched }: GraphTabProps) {
  const resource = useResource(`graph ${detail.id}`, async (signal) => {
    const [text, layout] = await Promise.all([
      getWorkflow(detail.id, signal),
      detail.has_layout ? getLayout(detail.id, signal) : null,
    ])
    const graph = readWorkflow(text)
    return { graph, placed: placeGraph(graph, layout) }
  })
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={8} />}>
      {({ graph, placed }) => <Graph graph={graph} placed={placed} detail={detail} watched={watched} />}
    </Loaded>
  )
}

interface GraphProps extends GraphTabProps {
  readonly graph: WorkflowGraph
  readonly placed: ReturnType<typeof placeGraph>
}

function Graph({ graph, placed, detail, watched }: GraphProps) {
  const heat = useSignal<Heat>('state')
  const wanted = useSignal('')
  const handle = useRef<GraphHandle | null>(null)
  const finder = useRef<HTMLInputElement>(null)
  const named = decode(hash.value.split('/')[1] ?? '')
  const chosen = named !== '' ? named : detail.status === 'failed' ? (detail.error?.node_id ?? null) : null
  const spans = watched.spans.value
  const isRunning = detail.status === 'running'
  const beat = isRunning ? second.value : 0
  const shownSpans = useMemo(() => new Map(spans), [spans, beat])
  const choose = (id: string | null) => setHash(id === null ? 'graph' : `graph/${encodeURIComponent(id)}`)
  useEffect(() => {
    if (chosen !== null && placed.ids.length > 30) handle.current?.lookAt(chosen)
  }, [chosen, placed])
  useKeys({
    f: () => {
      finder.current?.focus()
      return true
    },
  })
  function find(event: Event): void {
    event.preventDefault()
    const text = wanted.value.trim().toLowerCase()
    if (text === '') return
    const from = chosen === null ? -1 : placed.ids.indexOf(chosen)
    const order = placed.ids.map((_, index) => (index + from + 1) % placed.ids.length)
    const found = order.find((index) =>
      [placed.ids[index], placed.titles[index], placed.classes[index]].some((word) =>
        word.toLowerCase().includes(text),
      ),
    )
    if (found === undefined) return
    choose(placed.ids[found])
    handle.current?.lookAt(placed.ids[found])
  }
  const node = graph.nodes.find(({ id }) => id === chosen)
  return (
    <div class="graph-tab">
      <div class="graph-bar">
        <button type="button" class="button small" onClick={() => handle.current?.fit()}>
          Fit
        </button>
        <div class="segments" role="group" aria-label="Colours show">
          {(['state', 'time'] as const).map((word) => (
            <button
              key={word}
              type="button"
              aria-pressed={heat.value === word}
              onClick={() => {
                heat.value = word
              }}
            >
              {word === 'state' ? 'State' : 'Time'}
            </button>
          ))}
        </div>
        <form role="search" aria-label="Find a node" onSubmit={find}>
          <input
            ref={finder}
            type="search"
            placeholder="Find node (f)"
            aria-label="Find node"
            onInput={(event) => {
              wanted.value = event.currentTarget.value
            }}
          />
        </form>
        <span class="dim">
          {plural(graph.nodes.length, 'node')}
          {watched.isCut.value && ' · the record of the run is cut'}
        </span>
      </div>
      <div class={`graph-body ${node === undefined ? '' : 'with-panel'}`}>
        <GraphCanvas
          graph={placed}
          spans={shownSpans}
          heat={heat.value}
          chosen={chosen}
          onChoose={choose}
          handle={handle}
          label={`Graph of ${plural(graph.nodes.length, 'node')}; the table below lists them`}
        />
        {node !== undefined && (
          <NodePanel node={node} detail={detail} span={spans.get(node.id)} onClose={() => choose(null)} />
        )}
      </div>
      <NodeTable graph={graph} spans={spans} chosen={chosen} onChoose={choose} />
    </div>
  )
}
