/** What the nodes printed: any number of lines, live while it runs, searched and by node. */
import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import type { JobDetail, LogLine } from '../../api/job-detail.ts'
import { getLogs } from '../../api/jobs.ts'
import { ErrorBox, Skeleton } from '../../components/state.tsx'
import { toWindow } from '../../components/table/virtual-rows.ts'
import { CopyButton, Words } from '../../components/text.tsx'
import { decode, hash, setHash } from '../../routes.ts'
import { zoneName } from '../../state/preferences.ts'
import { formatTime, plural } from '../../text/format.ts'
import { addLines, toPieces, withoutTerminalCodes } from '../../text/log-text.ts'
import { toMarkedText } from '../../text/marks.ts'
import type { WatchedJob } from './use-job.ts'

const PAGE = 2000
const LINE_PX = 20

interface LogsTabProps {
  readonly detail: JobDetail
  readonly watched: WatchedJob
}

export function LogsTab({ detail, watched }: LogsTabProps) {
  const { lines, isCut, error, isReady } = useLog(detail, watched)
  const [search, setSearch] = useState('')
  const [isNewestFirst, setNewestFirst] = useState(false)
  const node = decode(hash.value.split('/')[1] ?? '')
  const nodes = [...new Set(lines.map((line) => line.node).filter((id) => id !== null))]
  const wanted = search.toLowerCase()
  const found = lines.filter(
    (line) => (node === '' || line.node === node) && (wanted === '' || line.text.toLowerCase().includes(wanted)),
  )
  const shown = isNewestFirst ? found.toReversed() : found
  return (
    <div class="logs">
      <div class="graph-bar">
        <input
          type="search"
          placeholder="Search the log"
          aria-label="Search the log"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <select
          aria-label="Node"
          value={node}
          onChange={(event) => {
            const { value } = event.currentTarget
            setHash(value === '' ? 'logs' : `logs/${encodeURIComponent(value)}`)
          }}
        >
          <option value="">All nodes</option>
          {[...new Set([...nodes, ...(node === '' ? [] : [node])])].map((id) => (
            <option key={id} value={id}>
              {toMarkedText(titleOf(id, watched))}
            </option>
          ))}
        </select>
        <button type="button" class="button small" onClick={() => setNewestFirst(!isNewestFirst)}>
          {isNewestFirst ? 'Newest first' : 'Oldest first'}
        </button>
        <CopyButton text={() => shown.map(({ text }) => text).join('\n')} label="Copy these lines" word="Copy" />
        <a class="button small" href={detail.links.log} download>
          Download
        </a>
        <span class="dim">
          {plural(found.length, 'line')}
          {isCut && ' · the log was too long and is cut'}
        </span>
      </div>
      {error !== null && <ErrorBox error={error} />}
      {!isReady && error === null && <Skeleton rows={8} />}
      {isReady && lines.length === 0 && (
        <p class="dim">Its nodes printed nothing{detail.completed_at === null ? ' yet' : ''}.</p>
      )}
      {shown.length > 0 && <LogView lines={shown} isTail={!isNewestFirst && detail.completed_at === null} />}
    </div>
  )
}

function titleOf(id: string, { spans }: WatchedJob): string {
  const span = spans.value.get(id)
  return span === undefined ? `node ${id}` : `${span.title ?? span.class_type} (${id})`
}

function useLog({ id, completed_at: completedAt }: JobDetail, watched: WatchedJob) {
  const lines = useSignal<readonly LogLine[]>([])
  const isCut = useSignal(false)
  const isReady = useSignal(false)
  const error = useSignal<ApiError | null>(null)
  useEffect(() => {
    const controller = new AbortController()
    const ask = async () => {
      // Lines are counted from 0, and `after` is the last one that is here.
      let after = lines.peek().at(-1)?.n ?? null
      for (let more = true; more; ) {
        const page = await getLogs(id, { after, limit: PAGE, signal: controller.signal })
        lines.value = addLines(lines.value, page.lines)
        isCut.value = page.is_cut
        isReady.value = true
        more = page.next !== null && page.lines.length > 0
        after = page.next ?? after
      }
      error.value = null
    }
    ask().catch((thrown: unknown) => {
      if (thrown instanceof ApiError) error.value = thrown
    })
    return () => controller.abort()
    // Asked again at the end: the last lines may have come when nobody listened.
  }, [id, completedAt])
  const { value: fresh } = watched.newLines
  useEffect(() => {
    if (fresh.length > 0) lines.value = addLines(lines.value, fresh)
  }, [fresh])
  return { lines: lines.value, isCut: isCut.value, isReady: isReady.value, error: error.value }
}

/** Follows the end as long as it stands at the end. */
function LogView({ lines, isTail }: { readonly lines: readonly LogLine[]; readonly isTail: boolean }) {
  const place = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(isTail)
  const [view, setView] = useState({ scrollTop: 0, height: 600 })
  const measure = () => {
    const element = place.current
    if (element === null) return
    isAtEnd.current = element.scrollTop + element.clientHeight >= element.scrollHeight - 2 * LINE_PX
    setView({ scrollTop: element.scrollTop, height: element.clientHeight })
  }
  useLayoutEffect(() => {
    const element = place.current
    if (element !== null && isTail && isAtEnd.current) element.scrollTop = element.scrollHeight
    measure()
  }, [lines.length])
  const { first, last, offset } = toWindow({ ...view, rowHeight: LINE_PX, rows: lines.length })
  return (
    <div ref={place} class="log-view" role="log" aria-live="off" aria-label="Log lines" tabIndex={0} onScroll={measure}>
      <div class="log-space" style={{ height: `${lines.length * LINE_PX}px` }}>
        <div style={{ transform: `translateY(${offset}px)` }}>
          {lines.slice(first, last).map((line) => (
            <div key={line.n} class="log-line">
              <span class="log-at dim number">
                {line.at === null ? '' : formatTime(Date.parse(line.at), zoneName())}
              </span>
              <span class="log-node dim">{line.node ?? ''}</span>
              <span class="log-text">
                {toPieces(withoutTerminalCodes(line.text)).map((piece, index) =>
                  piece.href === null ? (
                    <Words key={index} text={piece.text} />
                  ) : (
                    <a key={index} href={piece.href} target="_blank" rel="noopener noreferrer">
                      <Words text={piece.text} />
                    </a>
                  ),
                )}
              </span>
            </div>
          ))}
        </div>
      </div>
    </div>
  )
}
