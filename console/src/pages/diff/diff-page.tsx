/** Two jobs side by side: what was asked differently, how long each took, and their pictures under a slider. */
import type { JobDetail, NodeSpan, Output } from '../../api/job-detail.ts'
import { getJob, getNodes, getWorkflow } from '../../api/jobs.ts'
import { jobName } from '../../components/jobs/job-parts.tsx'
import { CompareSlider } from '../../components/media/media.tsx'
import { Loaded, Skeleton, StatusPill } from '../../components/state.tsx'
import { type PlainColumn, PlainTable } from '../../components/table/plain-table.tsx'
import { Duration, Words } from '../../components/text.tsx'
import { spanMs } from '../../graph/scene.ts'
import { readWorkflow } from '../../graph/workflow-graph.ts'
import { hrefOf } from '../../routes.ts'
import { serverNow } from '../../state/clock.ts'
import { useResource } from '../../state/resource.ts'
import { formatSpan, plural } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'
import { diffWorkflows, type WorkflowDiff } from './workflow-diff.ts'

function named(name: string, id: string) {
  return (
    <>
      <Words text={name} /> <span class="dim">{id}</span>
    </>
  )
}

const valued = (text: string | null) => (text === null ? <span class="dim">–</span> : <Words text={text} />)

const INPUTS: readonly PlainColumn<WorkflowDiff['inputs'][number]>[] = [
  { label: 'Node', cell: ({ node, title }) => named(title, node) },
  { label: 'Input', cell: ({ input }) => <Words text={input} /> },
  { label: 'A', cell: ({ a }) => valued(a), className: () => 'diff-a' },
  { label: 'B', cell: ({ b }) => valued(b), className: () => 'diff-b' },
]

interface Side {
  readonly job: JobDetail
  readonly workflow: ReturnType<typeof readWorkflow>
  readonly spans: readonly NodeSpan[]
}

async function load(id: string, signal: AbortSignal): Promise<Side> {
  const [job, text, { nodes }] = await Promise.all([getJob(id, signal), getWorkflow(id, signal), getNodes(id, signal)])
  return { job, workflow: readWorkflow(text), spans: nodes }
}

export function DiffPage({ a = '', b = '' }: Readonly<Record<string, string>>) {
  const resource = useResource(`diff ${a} ${b}`, async (signal) => {
    const [left, right] = await Promise.all([load(a, signal), load(b, signal)])
    return { left, right, diff: diffWorkflows(left.workflow, right.workflow) }
  })
  return (
    <section class="page diff">
      <h1>Two jobs</h1>
      <Loaded resource={resource} skeleton={<Skeleton rows={8} />}>
        {({ left, right, diff }) => (
          <>
            <div class="diff-heads">
              <SideHead side={left} mark="A" />
              <SideHead side={right} mark="B" />
            </div>
            <Differences diff={diff} />
            <Times left={left} right={right} />
            <Pictures left={left} right={right} />
          </>
        )}
      </Loaded>
    </section>
  )
}

function SideHead({ side: { job }, mark }: { readonly side: Side; readonly mark: string }) {
  return (
    <div class="card">
      <p class="row">
        <strong>{mark}</strong>
        <a href={hrefOf(`/jobs/${job.id}`)}>
          <Words text={jobName(job)} />
        </a>
        <StatusPill status={job.status} />
        <Duration from={job.started_at} to={job.completed_at} />
      </p>
    </div>
  )
}

function Differences({ diff }: { readonly diff: WorkflowDiff }) {
  const { inputs, onlyA, onlyB } = diff
  return (
    <section aria-labelledby="diff-inputs">
      <h2 id="diff-inputs">Inputs</h2>
      {inputs.length === 0 && onlyA.length === 0 && onlyB.length === 0 && (
        <p class="dim">Both ran the same workflow.</p>
      )}
      {inputs.length > 0 && (
        <PlainTable
          label="Inputs that differ"
          className="diff-table"
          columns={INPUTS}
          rows={inputs}
          keyOf={({ node, input }) => `${node} ${input}`}
        />
      )}
      {[
        ['A', onlyA],
        ['B', onlyB],
      ].map(
        ([mark, nodes]) =>
          nodes.length > 0 && (
            <p key={String(mark)}>
              Only in {mark as string}:{' '}
              {(nodes as WorkflowDiff['onlyA'])
                .map(({ id, title, classType }) => `${toMarkedText(title ?? classType)} (${id})`)
                .join(', ')}
            </p>
          ),
      )}
    </section>
  )
}

interface NodeTimes {
  readonly id: string
  readonly name: string
  readonly a: number
  readonly b: number
}

const TIMES: readonly PlainColumn<NodeTimes>[] = [
  { label: 'Node', cell: ({ id, name }) => named(name, id) },
  { label: 'A', isNumber: true, cell: ({ a }) => formatSpan(a) },
  { label: 'B', isNumber: true, cell: ({ b }) => formatSpan(b) },
  {
    label: 'Difference',
    isNumber: true,
    cell: ({ a, b }) => (a === b ? '' : `${b > a ? '+' : '−'}${formatSpan(Math.abs(b - a))}`),
  },
]

function Times({ left, right }: { readonly left: Side; readonly right: Side }) {
  const now = serverNow()
  const times = (side: Side) => new Map(side.spans.map((span) => [span.id, spanMs(span, now)]))
  const [inA, inB] = [times(left), times(right)]
  const rows = left.workflow.nodes
    .map(({ id, title, classType }) => ({ id, name: title ?? classType, a: inA.get(id) ?? 0, b: inB.get(id) ?? 0 }))
    .filter(({ a, b }) => a + b > 0)
    .toSorted((x, y) => Math.abs(y.a - y.b) - Math.abs(x.a - x.b))
    .slice(0, 20)
  if (rows.length === 0) return null
  return (
    <section aria-labelledby="diff-times">
      <h2 id="diff-times">Times</h2>
      <PlainTable label="Times" columns={TIMES} rows={rows} keyOf={({ id }) => id} />
    </section>
  )
}

function Pictures({ left, right }: { readonly left: Side; readonly right: Side }) {
  const images = (side: Side) => side.job.outputs_list.filter(({ content_type }) => content_type.startsWith('image/'))
  const [inA, inB] = [images(left), images(right)]
  const pairs = inA.flatMap((a, index): [Output, Output][] => {
    const same = inB.filter(({ node_id }) => node_id === a.node_id)
    const before = inA.slice(0, index).filter(({ node_id }) => node_id === a.node_id).length
    return same[before] === undefined ? [] : [[a, same[before]]]
  })
  if (inA.length === 0 && inB.length === 0) return null
  return (
    <section aria-labelledby="diff-pictures">
      <h2 id="diff-pictures">Pictures</h2>
      {pairs.length === 0 && <p class="dim">No node made a picture in both.</p>}
      <div class="compare-list">
        {pairs.slice(0, 24).map(([a, b]) => (
          <CompareSlider
            key={a.asset_id}
            a={{ url: a.url, name: `A: ${toMarkedText(a.name)}` }}
            b={{ url: b.url, name: `B: ${toMarkedText(b.name)}` }}
          />
        ))}
      </div>
      {pairs.length > 24 && <p class="dim">{plural(pairs.length - 24, 'more pair')}</p>}
    </section>
  )
}
