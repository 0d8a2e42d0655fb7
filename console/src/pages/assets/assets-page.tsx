/** Files that were uploaded: what they are and how large. */
import { type AssetRow, listAssets, removeAsset, uploadFile } from '../../api/assets.ts'
import { FileDrop } from '../../components/files/file-buttons.tsx'
import { Icon } from '../../components/icon.tsx'
import { downloadUrl, Thumb } from '../../components/media/media.tsx'
import { confirm } from '../../components/overlay/dialog.tsx'
import { EmptyState, ErrorBox, Skeleton } from '../../components/state.tsx'
import { VirtualGrid } from '../../components/table/virtual-grid.tsx'
import { Ago, Id, showToast, Words } from '../../components/text.tsx'
import { query, setQuery } from '../../routes.ts'
import { tell } from '../../state/deeds.ts'
import { type Page, usePages } from '../../state/pages.ts'
import { formatBytes, plural } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'

const PAGE = 200
const ROW_PX = 64

async function load(cursor: string | null, signal: AbortSignal): Promise<Page<AssetRow>> {
  const asked = new URLSearchParams({ limit: String(PAGE), ...(cursor !== null && { cursor }) })
  const { assets, next_cursor: next } = await listAssets(asked, signal)
  return { items: assets, next }
}

export function AssetsPage() {
  const pages = usePages('assets', load)
  const wanted = query.value.get('q') ?? ''
  const change = (deed: () => Promise<unknown>) =>
    tell(async () => {
      await deed()
      pages.reload()
    })
  const upload = (files: readonly File[]) =>
    change(async () => {
      for (const file of files) await uploadFile(file)
      showToast(files.length === 1 ? `${files[0].name} is uploaded.` : `${plural(files.length, 'file')} are uploaded.`)
    })
  async function remove(asset: AssetRow): Promise<void> {
    const isMeant = await confirm({
      title: `Remove “${toMarkedText(asset.name)}”?`,
      text: 'Jobs that used it keep what they made; running them again needs the file.',
      deed: 'Remove',
      isDangerous: true,
    })
    if (isMeant) await change(() => removeAsset(asset.asset_id))
  }
  const { items, isWhole, error } = pages
  const found = unique(items.value).filter(({ name }) => name.toLowerCase().includes(wanted.toLowerCase()))
  const isEmpty = isWhole.value && items.value.length === 0
  return (
    <section class="page assets">
      <div class="page-head">
        <h1>Assets</h1>
        {!isEmpty && (
          <input
            type="search"
            aria-label="Find a file"
            placeholder="Find by name"
            value={wanted}
            onInput={(event) => setQuery({ q: event.currentTarget.value }, { replace: true })}
          />
        )}
      </div>
      <FileDrop
        label="Upload files"
        hint="or drop them here; workflows and models can then take them as inputs"
        accept="*/*"
        isSeveral
        onFiles={(files) => void upload(files)}
      />
      {error.value !== null && <ErrorBox error={error.value} onRetry={pages.reload} />}
      {items.value.length === 0 && !isWhole.value && error.value === null && <Skeleton rows={8} />}
      {isEmpty && (
        <EmptyState title="No files yet">
          <p class="dim">Pictures and other files that you or a program uploaded are listed here.</p>
        </EmptyState>
      )}
      {!isEmpty && isWhole.value && found.length === 0 && (
        <EmptyState title={`No file is called “${toMarkedText(wanted)}”`}>
          <button type="button" class="button" onClick={() => setQuery({ q: null })}>
            Show all
          </button>
        </EmptyState>
      )}
      {found.length > 0 && (
        <p class="dim">
          {plural(found.length, 'file')}
          {!isWhole.value && ' so far'}, {formatBytes(found.reduce((sum, { size_bytes: size }) => sum + size, 0))}
        </p>
      )}
      <VirtualGrid
        label="Files"
        className="asset-list"
        rowHeight={ROW_PX}
        count={found.length}
        keyOf={(index) => found[index].asset_id}
        loaded={items.value.length}
        onEndInSight={pages.loadMore}
      >
        {(index) => <OneAsset asset={found[index]} onRemove={() => void remove(found[index])} />}
      </VirtualGrid>
    </section>
  )
}

/** What was uploaded between two pages shows the last of the first one again. */
function unique(assets: readonly AssetRow[]): readonly AssetRow[] {
  return [...new Map(assets.map((asset) => [asset.asset_id, asset])).values()]
}

function OneAsset({ asset, onRemove }: { readonly asset: AssetRow; readonly onRemove: () => void }) {
  return (
    <>
      <span class="asset-thumb">
        <Thumb assetId={asset.asset_id} type={asset.content_type} alt="" width={64} />
      </span>
      <span class="asset-name">
        <Words text={asset.name} />
        <span class="dim">
          {toMarkedText(asset.content_type)} · {formatBytes(asset.size_bytes)} · <Ago at={asset.created_at} />
        </span>
      </span>
      <Id id={asset.asset_id} label="asset id" />
      <a
        class="icon-button"
        href={downloadUrl(asset.asset_id)}
        download={toMarkedText(asset.name)}
        aria-label={`Download ${toMarkedText(asset.name)}`}
      >
        <Icon name="down" />
      </a>
      <button type="button" class="icon-button" aria-label={`Remove ${toMarkedText(asset.name)}`} onClick={onRemove}>
        <Icon name="cross" />
      </button>
    </>
  )
}
