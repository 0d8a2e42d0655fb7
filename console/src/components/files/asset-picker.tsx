/** Chooses among the files that the service has: uploads, and what earlier jobs made. */
import { type Signal, useSignal } from '@preact/signals'
import { listAssets } from '../../api/assets.ts'
import { listOutputs } from '../../api/jobs.ts'
import { type Page, usePages } from '../../state/pages.ts'
import { plural } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'
import { type MediaItem, Thumb } from '../media/media.tsx'
import { Dialog } from '../overlay/dialog.tsx'
import { EmptyState, ErrorBox, Skeleton } from '../state.tsx'
import { VirtualGrid } from '../table/virtual-grid.tsx'
import { Words } from '../text.tsx'

type Origin = 'uploads' | 'outputs'

const ORIGINS: Readonly<Record<Origin, string>> = { uploads: 'Uploads', outputs: 'Results of jobs' }

interface AssetPickerProps {
  /** `image`, `audio`, `video`; null: whatever it is. */
  readonly media: string | null
  readonly isSeveral: boolean
  readonly onChoose: (chosen: readonly MediaItem[]) => void
  readonly onClose: () => void
}

async function load(
  origin: Origin,
  media: string | null,
  cursor: string | null,
  signal: AbortSignal,
): Promise<Page<MediaItem>> {
  const asked = new URLSearchParams({ limit: '100' })
  if (cursor !== null) asked.set('cursor', cursor)
  if (origin === 'outputs') {
    if (media !== null) asked.set('type', media)
    const page = await listOutputs(asked, signal)
    return { items: page.outputs, next: page.next_cursor }
  }
  const page = await listAssets(asked, signal)
  const items = page.assets.filter(({ content_type: type }) => media === null || type.startsWith(`${media}/`))
  return { items, next: page.next_cursor }
}

export function AssetPicker({ media, isSeveral, onChoose, onClose }: AssetPickerProps) {
  const origin = useSignal<Origin>('uploads')
  const wanted = useSignal('')
  const chosen = useSignal<readonly MediaItem[]>([])
  const pages = usePages(`${origin.value} ${media}`, (cursor, signal) => load(origin.peek(), media, cursor, signal))
  const words = wanted.value.toLowerCase()
  const found = pages.items.value.filter(({ name }) => name.toLowerCase().includes(words))
  const isChosen = (item: MediaItem) => chosen.value.some(({ asset_id: id }) => id === item.asset_id)
  function take(item: MediaItem): void {
    if (!isSeveral) return onChoose([item])
    chosen.value = isChosen(item)
      ? chosen.value.filter(({ asset_id: id }) => id !== item.asset_id)
      : [...chosen.value, item]
  }
  return (
    <Dialog title={isSeveral ? 'Choose files' : 'Choose a file'} size="large" onClose={onClose}>
      <div class="picker-bar">
        <OriginChoice origin={origin} />
        <input
          type="search"
          aria-label="Find by name"
          placeholder="Find by name"
          value={wanted.value}
          onInput={(event) => {
            wanted.value = event.currentTarget.value
          }}
        />
        {isSeveral && (
          <button
            type="button"
            class="button primary"
            disabled={chosen.value.length === 0}
            onClick={() => onChoose(chosen.value)}
          >
            Take {chosen.value.length === 0 ? '' : plural(chosen.value.length, 'file')}
          </button>
        )}
      </div>
      {pages.error.value !== null && <ErrorBox error={pages.error.value} />}
      {found.length === 0 && !pages.isWhole.value && pages.error.value === null && <Skeleton rows={10} kind="tile" />}
      {found.length === 0 && pages.isWhole.value && <Nothing origin={origin.value} isSearch={words !== ''} />}
      <div class="picker-scroll">
        <VirtualGrid
          label={ORIGINS[origin.value]}
          count={found.length}
          keyOf={(index) => found[index].asset_id}
          loaded={pages.items.value.length}
          onEndInSight={pages.loadMore}
        >
          {(index) => {
            const item = found[index]
            return (
              <>
                <button
                  type="button"
                  class="tile-button picker-tile"
                  aria-pressed={isSeveral ? isChosen(item) : undefined}
                  aria-label={`Take ${toMarkedText(item.name)}`}
                  onClick={() => take(item)}
                >
                  <Thumb assetId={item.asset_id} type={item.content_type} alt="" width={256} />
                </button>
                <p class="tile-line dim">
                  <Words text={item.name} />
                </p>
              </>
            )
          }}
        </VirtualGrid>
      </div>
    </Dialog>
  )
}

function OriginChoice({ origin }: { readonly origin: Signal<Origin> }) {
  return (
    <div class="segments" role="group" aria-label="From">
      {(Object.entries(ORIGINS) as [Origin, string][]).map(([name, label]) => (
        <button
          key={name}
          type="button"
          aria-pressed={origin.value === name}
          onClick={() => {
            origin.value = name
          }}
        >
          {label}
        </button>
      ))}
    </div>
  )
}

function Nothing({ origin, isSearch }: { readonly origin: Origin; readonly isSearch: boolean }) {
  if (isSearch) return <EmptyState title="No file of this name" />
  return (
    <EmptyState title={origin === 'uploads' ? 'Nothing was uploaded yet' : 'No job made a file of this kind yet'}>
      <p class="dim">
        {origin === 'uploads' ? 'Close this and choose a file of this machine.' : 'Look among the uploads instead.'}
      </p>
    </EmptyState>
  )
}
