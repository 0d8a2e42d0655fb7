/** What all jobs made, newest first: by kind, since when, by node; the pages load as the eye reaches them. */
import { useEffect, useMemo } from 'preact/hooks'
import { toMoment } from '../../api/filter.ts'
import { type GalleryOutput, listOutputs } from '../../api/jobs.ts'
import { Icon } from '../../components/icon.tsx'
import { downloadUrl, Media, Thumb } from '../../components/media/media.tsx'
import { Dialog } from '../../components/overlay/dialog.tsx'
import { EmptyState, ErrorBox, Skeleton } from '../../components/state.tsx'
import { VirtualGrid } from '../../components/table/virtual-grid.tsx'
import { FilterLinks } from '../../components/tabs/tabs.tsx'
import { Ago, Words } from '../../components/text.tsx'
import { hrefOf, query, setQuery } from '../../routes.ts'
import { serverNow } from '../../state/clock.ts'
import { type Page, usePages } from '../../state/pages.ts'
import { formatBytes } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'

const TYPES = { '': 'All', image: 'Pictures', video: 'Videos', audio: 'Sounds', text: 'Texts' } as const
const SINCE = { '': 'Any time', '24h': 'Last day', '7d': 'Last week' } as const
const PAGE = 100
const FILTERS = ['type', 'since', 'node'] as const

function addressWith(name: string, value: string): string {
  const next = new URLSearchParams(query.value)
  next.delete('look')
  if (value === '') next.delete(name)
  else next.set(name, value)
  const text = next.toString()
  return `/gallery${text === '' ? '' : `?${text}`}`
}

async function load(filter: URLSearchParams, cursor: string | null, signal: AbortSignal): Promise<Page<GalleryOutput>> {
  const asked = new URLSearchParams(filter)
  asked.set('limit', String(PAGE))
  const since = filter.get('since')
  if (since !== null) asked.set('since', toMoment(since, serverNow()))
  if (cursor !== null) asked.set('cursor', cursor)
  const { outputs, next_cursor: next } = await listOutputs(asked, signal)
  return { items: outputs, next }
}

export function GalleryPage() {
  const filter = new URLSearchParams()
  for (const name of FILTERS) {
    const value = query.value.get(name) ?? ''
    if (value !== '') filter.set(name, value)
  }
  const key = filter.toString()
  const { items, error, isWhole, loadMore, reload } = usePages(key, (cursor, signal) => load(filter, cursor, signal))
  const outputs = items.value
  const look = query.value.get('look')
  const at = useMemo(() => (look === null ? -1 : outputs.findIndex(({ asset_id: id }) => id === look)), [look, outputs])
  const node = filter.get('node')
  return (
    <section class="page gallery">
      <h1 class="unseen">Gallery</h1>
      <div class="filter-bar">
        <Choice label="Kinds" name="type" words={TYPES} chosen={filter.get('type') ?? ''} />
        <Choice label="Since" name="since" words={SINCE} chosen={filter.get('since') ?? ''} />
        {node !== null && (
          <span class="chip">
            <Words text={`node: ${node}`} />
            <button
              type="button"
              class="chip-remove"
              aria-label="Remove filter node"
              onClick={() => setQuery({ node: null })}
            >
              <Icon name="cross" />
            </button>
          </span>
        )}
      </div>
      {error.value !== null && <ErrorBox error={error.value} onRetry={reload} />}
      {outputs.length === 0 && !isWhole.value && error.value === null && <Skeleton rows={12} kind="tile" />}
      {outputs.length === 0 && isWhole.value && <NoOutputs isFiltered={key !== ''} />}
      <VirtualGrid
        label="Results"
        count={outputs.length}
        keyOf={(index) => outputs[index].asset_id}
        onEndInSight={loadMore}
      >
        {(index) => <Tile output={outputs[index]} />}
      </VirtualGrid>
      {at !== -1 && (
        <OutputDialog
          output={outputs[at]}
          onMove={(by) => {
            const next = outputs[Math.min(outputs.length - 1, Math.max(0, at + by))]
            if (at + by >= outputs.length - 1) loadMore()
            setQuery({ look: next.asset_id }, { replace: true })
          }}
          onClose={() => setQuery({ look: null })}
        />
      )}
    </section>
  )
}

function Tile({ output }: { readonly output: GalleryOutput }) {
  const name = output.job_title === '' ? output.name : output.job_title
  return (
    <>
      <button
        type="button"
        class="tile-button"
        aria-label={`Look at ${toMarkedText(output.name)} of ${toMarkedText(output.job_title)}`}
        onClick={() => setQuery({ look: output.asset_id })}
      >
        <Thumb assetId={output.asset_id} type={output.content_type} alt="" width={256} />
      </button>
      <p class="tile-line dim">
        <Words text={name} />
      </p>
    </>
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
    <FilterLinks
      label={label}
      places={Object.entries(words).map(([value, text]) => [addressWith(name, value), text])}
      here={addressWith(name, chosen)}
    />
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

interface OutputDialogProps {
  readonly output: GalleryOutput
  readonly onMove: (by: 1 | -1) => void
  readonly onClose: () => void
}

/** One output, large; arrows lead to its neighbours. */
function OutputDialog({ output, onMove, onClose }: OutputDialogProps) {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key] as 1 | -1 | undefined
      if (step !== undefined && !(event.target instanceof HTMLMediaElement)) onMove(step)
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [onMove])
  return (
    <Dialog title={toMarkedText(output.name)} size="large" onClose={onClose}>
      <div class="output-large">
        <Media key={output.asset_id} item={output} />
      </div>
      <p class="row output-line">
        <button type="button" class="icon-button" aria-label="Previous" onClick={() => onMove(-1)}>
          <Icon name="left" />
        </button>
        <button type="button" class="icon-button" aria-label="Next" onClick={() => onMove(1)}>
          <Icon name="right" />
        </button>
        <a href={hrefOf(`/jobs/${output.job_id}#result`)}>
          <Words text={output.job_title === '' ? 'its job' : output.job_title} />
        </a>
        <span class="dim">
          {formatBytes(output.size_bytes)} · <Ago at={output.created_at} />
        </span>
        <span class="top-line-space" />
        <a class="button" href={hrefOf(`/run?from=${output.job_id}`)}>
          Run again…
        </a>
        <a class="button" href={downloadUrl(output.asset_id)} download={toMarkedText(output.name)}>
          <Icon name="down" /> Download
        </a>
      </p>
    </Dialog>
  )
}
