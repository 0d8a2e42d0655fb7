/** The graph of the job, lit by its run, and the same nodes as a table. */
import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { JobDetail, NodeSpan, NodeState } from '../../api/job-detail.ts'
import { getLayout, getWorkflow } from '../../api/jobs.ts'
import { Icon } from '../../components/icon.tsx'
import { Media } from '../../components/media/media.tsx'
import { Loaded, Skeleton, type StateLook, StatePill } from '../../components/state.tsx'
import { TableWrap } from '../../components/table/plain-table.tsx'
import { Duration, Words } from '../../components/text.tsx'
import { GraphCanvas, type GraphHandle } from '../../graph/graph-canvas.tsx'
import { type Heat, placeGraph } from '../../graph/scene.ts'
import { type GraphNode, readWorkflow, type WorkflowGraph } from '../../graph/workflow-graph.ts'
import { useKeys } from '../../keys/keys.ts'
import { decode, hash, setHash } from '../../routes.ts'
import { second } from '../../state/clock.ts'
import { useResource } from '../../state/resource.ts'
import { plural } from '../../text/format.ts'
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
        <HeatChoice heat={heat} />
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

function HeatChoice({ heat }: { readonly heat: Signal<Heat> }) {
  return (
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
  )
}

interface NodePanelProps {
  readonly node: GraphNode
  readonly detail: JobDetail
  readonly span: NodeSpan | undefined
  readonly onClose: () => void
}

/** One node: what went in, what came out, how long it took. */
function NodePanel({ node, detail, span, onClose }: NodePanelProps) {
  const outputs = detail.outputs_list.filter(({ node_id }) => node_id === node.id)
  const isFailed = detail.status === 'failed' && detail.error?.node_id === node.id
  return (
    <aside class="node-panel" aria-label={`Node ${node.id}`}>
      <div class="section-head">
        <h2>
          <Words text={node.title ?? node.classType} />
        </h2>
        <button type="button" class="icon-button" aria-label="Close node" onClick={onClose}>
          <Icon name="cross" />
        </button>
      </div>
      <p class="dim">
        node {node.id} · <Words text={node.classType} />
      </p>
      <p class="row">
        <NodeStateWord state={span?.state ?? 'waiting'} />
        {span?.started_at != null && span.state !== 'cached' && <Duration from={span.started_at} to={span.ended_at} />}
      </p>
      {isFailed && (
        <p class="failed-text">
          <Words text={detail.error?.message ?? ''} />
        </p>
      )}
      <h3>Inputs</h3>
      <dl class="node-inputs">
        {node.inputs.map(({ name, value, link }) => (
          <div key={name}>
            <dt>
              <Words text={name} />
            </dt>
            <dd>
              {link === null ? (
                <Words text={typeof value === 'string' ? value : stringifyLosslessJson(value)} />
              ) : (
                <button
                  type="button"
                  class="link-button"
                  onClick={() => setHash(`graph/${encodeURIComponent(link.from)}`)}
                >
                  from node {link.from}
                </button>
              )}
            </dd>
          </div>
        ))}
      </dl>
      {outputs.length > 0 && (
        <>
          <h3>Outputs</h3>
          <div class="stack">
            {outputs.map((output) => (
              <Media key={output.asset_id} item={output} />
            ))}
          </div>
        </>
      )}
      <p>
        <button type="button" class="link-button" onClick={() => setHash(`logs/${encodeURIComponent(node.id)}`)}>
          Its log lines
        </button>
      </p>
    </aside>
  )
}

interface NodeTableProps {
  readonly graph: WorkflowGraph
  readonly spans: ReadonlyMap<string, NodeSpan>
  readonly chosen: string | null
  readonly onChoose: (id: string) => void
}

/** More rows than this make the page slow to no use: the picture and its search go on. */
const MAX_ROWS = 500

/** The nodes as a table: the equal of the picture, in the same order, with state and time. */
export function NodeTable({ graph, spans, chosen, onChoose }: NodeTableProps) {
  const rows = graph.nodes.slice(0, MAX_ROWS)
  return (
    <TableWrap label="Nodes">
      <table class="plain-table">
        <caption class="unseen">Nodes</caption>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">Title</th>
            <th scope="col" class="class-cell">
              Class
            </th>
            <th scope="col">State</th>
            <th scope="col" class="right">
              Time
            </th>
            <th scope="col" class="right">
              Outputs
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, title, classType }) => {
            const span = spans.get(id)
            return (
              <tr key={id} aria-current={id === chosen ? 'true' : undefined}>
                <td>
                  <button type="button" class="link-button" onClick={() => onChoose(id)}>
                    <Words text={id} />
                  </button>
                </td>
                <td>
                  <Words text={title ?? ''} />
                </td>
                <td class="dim class-cell">
                  <Words text={classType} />
                </td>
                <td>
                  <NodeStateWord state={span?.state ?? 'waiting'} />
                </td>
                <td class="right">
                  {span?.state === 'cached' ? (
                    '–'
                  ) : (
                    <Duration from={span?.started_at ?? null} to={span?.ended_at ?? null} />
                  )}
                </td>
                <td class="right number">{span === undefined || span.outputs === 0 ? '' : span.outputs}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
      {graph.nodes.length > MAX_ROWS && (
        <p class="dim">
          The first {MAX_ROWS} of {graph.nodes.length}; the search above finds the others.
        </p>
      )}
    </TableWrap>
  )
}

const LOOKS: Readonly<Record<NodeState, StateLook>> = {
  waiting: ['clock', 'waiting', 'queued'],
  running: ['play', 'running', 'running'],
  done: ['check', 'done', 'succeeded'],
  cached: ['copy', 'cached', 'queued'],
  failed: ['cross', 'failed', 'failed'],
  interrupted: ['stop', 'interrupted', 'canceled'],
  skipped: ['stop', 'not run', 'canceled'],
}

function NodeStateWord({ state }: { readonly state: NodeState }) {
  return <StatePill look={LOOKS[state]} />
}
