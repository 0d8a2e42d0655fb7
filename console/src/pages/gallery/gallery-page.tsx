/** What all jobs made, newest first: by kind, since when, by node; the pages load as the eye reaches them. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { toMoment } from '../../api/filter.ts'
import { type GalleryOutput, listOutputs } from '../../api/outputs.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { ErrorBox } from '../../components/error-box.tsx'
import { Thumb } from '../../components/media/thumb.tsx'
import { Skeleton } from '../../components/skeleton.tsx'
import { Words } from '../../components/words.tsx'
import { hrefOf, query } from '../../routes.ts'
import { serverNow } from '../../state/clock.ts'
import { backoffMs } from '../../state/live/backoff.ts'
import { toMarkedText } from '../../text/marks.ts'
import { OutputDialog } from './output-dialog.tsx'

const TYPES = { '': 'All', image: 'Pictures', video: 'Videos', audio: 'Sounds', text: 'Texts' } as const
const SINCE = { '': 'Any time', '24h': 'Last day', '7d': 'Last week' } as const
const PAGE = 60

/** After the paint, so that what came is laid out and the end of the list is where it belongs. */
function soon(deed: () => Promise<void>, ms = 50): void {
  setTimeout(() => void deed(), ms)
}

function hrefWith(name: string, value: string): string {
  const next = new URLSearchParams(query.value)
  if (value === '') next.delete(name)
  else next.set(name, value)
  const text = next.toString()
  return hrefOf(`/gallery${text === '' ? '' : `?${text}`}`)
}

export function GalleryPage() {
  const type = query.value.get('type') ?? ''
  const since = query.value.get('since') ?? ''
  const node = query.value.get('node') ?? ''
  const outputs = useSignal<readonly GalleryOutput[]>([])
  const cursor = useSignal<string | null>(null)
  const error = useSignal<ApiError | null>(null)
  const isReady = useSignal(false)
  const shown = useSignal<number | null>(null)
  const end = useRef<HTMLDivElement>(null)
  const isInSight = useRef(false)
  const asking = useRef<AbortSignal | null>(null)

  async function ask(signal: AbortSignal, at: string | null, failures = 0): Promise<void> {
    if (asking.current === signal || signal.aborted) return
    asking.current = signal
    const asked = new URLSearchParams({ limit: String(PAGE) })
    if (type !== '') asked.set('type', type)
    if (node !== '') asked.set('node', node)
    if (since !== '') asked.set('since', toMoment(since, serverNow()))
    if (at !== null) asked.set('cursor', at)
    try {
      const page = await listOutputs(asked, signal)
      if (signal.aborted) return
      failures = 0
      outputs.value = at === null ? page.outputs : [...outputs.value, ...page.outputs]
      cursor.value = page.next_cursor
      error.value = null
      isReady.value = true
      // A page may be empty and not the last one: the service looks through so many jobs and no more.
      at = page.next_cursor
      if (at !== null && (isInSight.current || outputs.value.length === 0)) soon(() => ask(signal, at))
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || signal.aborted) return
      error.value = thrown
      const isTemporary = thrown.status === null || thrown.status >= 500 || thrown.status === 429
      const waitMs = Math.max(backoffMs(failures, Math.random()), (thrown.retryAfterSeconds ?? 0) * 1000)
      if (isTemporary) soon(() => ask(signal, at, failures + 1), waitMs)
    } finally {
      if (asking.current === signal) asking.current = null
    }
  }

  useEffect(() => {
    const controller = new AbortController()
    isReady.value = false
    outputs.value = []
    cursor.value = null
    shown.value = null
    void ask(controller.signal, null)
    const watcher = new IntersectionObserver(
      (entries) => {
        isInSight.current = entries.at(-1)?.isIntersecting === true
        if (isInSight.current && cursor.value !== null) void ask(controller.signal, cursor.value)
      },
      { rootMargin: '800px' },
    )
    if (end.current !== null) watcher.observe(end.current)
    return () => {
      controller.abort()
      watcher.disconnect()
    }
  }, [type, since, node])

  return (
    <section class="page gallery">
      <h1 class="unseen">Gallery</h1>
      <div class="filter-bar">
        <Choice label="Kinds" name="type" words={TYPES} chosen={type} />
        <Choice label="Since" name="since" words={SINCE} chosen={since} />
      </div>
      {error.value !== null && <ErrorBox error={error.value} />}
      {(!isReady.value || (outputs.value.length === 0 && cursor.value !== null)) && error.value === null && (
        <Skeleton rows={12} kind="tile" />
      )}
      {isReady.value && outputs.value.length === 0 && cursor.value === null && (
        <NoOutputs isFiltered={type !== '' || since !== '' || node !== ''} />
      )}
      <ul class="tiles gallery-tiles">
        {outputs.value.map((output, index) => (
          <li key={output.asset_id}>
            <button
              type="button"
              class="tile-button"
              aria-label={`Look at ${toMarkedText(output.name)} of ${toMarkedText(output.job_title)}`}
              onClick={() => {
                shown.value = index
              }}
            >
              <Thumb assetId={output.asset_id} type={output.content_type} alt="" width={256} />
            </button>
            <p class="tile-line dim">
              <Words text={output.job_title === '' ? output.name : output.job_title} />
            </p>
          </li>
        ))}
      </ul>
      <div ref={end} />
      {shown.value !== null && outputs.value[shown.value] !== undefined && (
        <OutputDialog
          output={outputs.value[shown.value]}
          onMove={(by) => {
            shown.value = Math.min(outputs.value.length - 1, Math.max(0, (shown.value ?? 0) + by))
          }}
          onClose={() => {
            shown.value = null
          }}
        />
      )}
    </section>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly name: string
  readonly words: Readonly<Record<string, string>>
  readonly chosen: string
}

function Choice({ label, name, words, chosen }: ChoiceProps) {
  return (
    <nav class="segments" aria-label={label}>
      {Object.entries(words).map(([value, text]) => (
        <a key={value} href={hrefWith(name, value)} aria-current={chosen === value ? 'true' : undefined}>
          {text}
        </a>
      ))}
    </nav>
  )
}

function NoOutputs({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered)
    return (
      <EmptyState title="Nothing of this kind">
        <a class="button" href={hrefOf('/gallery')}>
          Show everything
        </a>
      </EmptyState>
    )
  return (
    <EmptyState title="Nothing here yet">
      <p class="dim">Pictures, videos, sounds and texts that jobs make are shown here.</p>
      <a class="button primary" href={hrefOf('/run')}>
        Run a workflow
      </a>
    </EmptyState>
  )
}
