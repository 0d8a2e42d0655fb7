/** When each node ran: bars over a common line of time, long idle stretches compressed. */
import type { JobDetail, NodeSpan } from '../../api/job-detail.ts'
import { Words } from '../../components/text.tsx'
import { setHash } from '../../routes.ts'
import { second } from '../../state/clock.ts'
import { formatSpan, plural } from '../../text/format.ts'
import { toScale, toTicks } from './timeline-scale.ts'
import type { WatchedJob } from './use-job.ts'

const TICKS = 8
const MAX_ROWS = 500

export function TimelineTab({ detail, watched }: { readonly detail: JobDetail; readonly watched: WatchedJob }) {
  const now = detail.completed_at === null ? second.value : Date.parse(detail.completed_at)
  const spans = [...watched.spans.value.values()]
    .filter((span) => span.started_at !== null && span.state !== 'cached')
    .toSorted((a, b) => Date.parse(a.started_at ?? '') - Date.parse(b.started_at ?? ''))
  const cached = [...watched.spans.value.values()].filter(({ state }) => state === 'cached').length
  const created = Date.parse(detail.created_at)
  const started = detail.started_at === null ? now : Date.parse(detail.started_at)
  const stretches = spans.map((span) => ({
    from: Date.parse(span.started_at ?? ''),
    to: span.ended_at === null ? now : Date.parse(span.ended_at),
  }))
  const scale = toScale(stretches, { from: created, to: Math.max(now, created + 1) })
  const ticks = toTicks(now - started, TICKS)
  const percent = (time: number) => `${(scale.at(time) * 100).toFixed(3)}%`
  if (detail.started_at === null)
    return <p class="dim">It has not started yet: it waits for {formatSpan(now - created)}.</p>
  return (
    <div class="timeline" role="table" aria-label="Timeline of nodes">
      <div class="timeline-row timeline-axis" role="presentation" aria-hidden="true">
        <span />
        <span class="timeline-track">
          {ticks.map((tick) => (
            <span key={tick} class="tick number" style={{ left: percent(started + tick) }}>
              {tick === 0 ? '0' : formatSpan(tick)}
            </span>
          ))}
        </span>
      </div>
      <div class="timeline-row" role="row">
        <span role="rowheader" class="dim">
          waited
        </span>
        <span role="cell" class="timeline-track">
          <span class="bar bar-wait" style={{ left: percent(created), width: width(scale, created, started) }} />
          <span class="bar-label number" style={labelAt(scale, created, started)}>
            {formatSpan(started - created)}
          </span>
        </span>
      </div>
      {spans.slice(0, MAX_ROWS).map((span, index) => (
        <Row key={span.id} span={span} stretch={stretches[index]} scale={scale} />
      ))}
      {scale.gaps.length > 0 && <p class="dim">⋯ marks stretches in which nothing ran; they are drawn short.</p>}
      {cached > 0 && <p class="dim">{plural(cached, 'cached node')} took no time.</p>}
    </div>
  )
}

type Scale = ReturnType<typeof toScale>

function width(scale: Scale, from: number, to: number): string {
  return `max(2px, ${((scale.at(to) - scale.at(from)) * 100).toFixed(3)}%)`
}

function labelAt(scale: Scale, from: number, to: number) {
  const end = scale.at(to)
  return end > 0.88 ? { right: `${((1 - scale.at(from)) * 100).toFixed(3)}%` } : { left: `${(end * 100).toFixed(3)}%` }
}

interface RowProps {
  readonly span: NodeSpan
  readonly stretch: { readonly from: number; readonly to: number }
  readonly scale: Scale
}

function Row({ span, stretch, scale }: RowProps) {
  return (
    <div class="timeline-row" role="row">
      <span role="rowheader">
        <button type="button" class="link-button" onClick={() => setHash(`graph/${encodeURIComponent(span.id)}`)}>
          <Words text={span.title ?? span.class_type} />
        </button>
      </span>
      <span role="cell" class="timeline-track">
        {scale.gaps.map((gap) => (
          <span
            key={gap.from}
            class="gap"
            aria-hidden="true"
            style={{ left: `${scale.at(gap.from) * 100}%`, width: `${(scale.at(gap.to) - scale.at(gap.from)) * 100}%` }}
          >
            ⋯
          </span>
        ))}
        <span
          class={`bar bar-${span.state}`}
          style={{
            left: `${(scale.at(stretch.from) * 100).toFixed(3)}%`,
            width: width(scale, stretch.from, stretch.to),
          }}
        />
        <span class="bar-label number" style={labelAt(scale, stretch.from, stretch.to)}>
          {span.state === 'failed' && '✗ '}
          {span.state === 'interrupted' && 'interrupted after '}
          {formatSpan(stretch.to - stretch.from)}
        </span>
      </span>
    </div>
  )
}
