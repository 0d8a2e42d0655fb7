/** Files that were uploaded: what they are, how large, how many jobs use them. */
import { useSignal } from '@preact/signals'
import { type AssetRow, listAssets, removeAsset, uploadFile } from '../../api/assets.ts'
import { ApiError } from '../../api/client.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { Ago } from '../../components/figures.tsx'
import { FileDrop } from '../../components/file-drop.tsx'
import { Icon } from '../../components/icon.tsx'
import { Id } from '../../components/id.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { downloadUrl } from '../../components/media/media.tsx'
import { Thumb } from '../../components/media/thumb.tsx'
import { confirm } from '../../components/overlay/confirm.tsx'
import { showToast } from '../../components/overlay/toast.tsx'
import { Skeleton } from '../../components/skeleton.tsx'
import { Words } from '../../components/words.tsx'
import { useResource } from '../../state/resource.ts'
import { formatBytes, plural } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'

const PAGE = 100

export function AssetsPage() {
  const more = useSignal<readonly AssetRow[]>([])
  const cursor = useSignal<string | null>(null)
  const resource = useResource('assets', async (signal) => {
    const page = await listAssets(new URLSearchParams({ limit: String(PAGE) }), signal)
    more.value = []
    cursor.value = page.next_cursor
    return page.assets
  })
  async function tell(deed: () => Promise<unknown>): Promise<void> {
    try {
      await deed()
      resource.reload()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      showToast(error.message)
    }
  }
  async function loadMore(): Promise<void> {
    if (cursor.value === null) return
    const page = await listAssets(new URLSearchParams({ limit: String(PAGE), cursor: cursor.value }))
    more.value = [...more.value, ...page.assets]
    cursor.value = page.next_cursor
  }
  async function remove(asset: AssetRow): Promise<void> {
    const isMeant = await confirm({
      title: 'Remove this file?',
      text:
        asset.used_by === 0
          ? 'No job uses it.'
          : `${plural(asset.used_by, 'job')} used it: they keep what they made; running them again needs the file.`,
      deed: 'Remove',
      isDangerous: true,
    })
    if (isMeant) await tell(() => removeAsset(asset.id))
  }
  return (
    <section class="page assets">
      <h1>Assets</h1>
      <FileDrop
        label="Upload a file"
        hint="or drop it here; workflows can then take it as an input"
        accept="*/*"
        onFile={(file) => void tell(() => uploadFile(file))}
      />
      <Loaded resource={resource} skeleton={<Skeleton rows={8} />}>
        {(assets) =>
          assets.length === 0 ? (
            <EmptyState title="No files yet">
              <p class="dim">Pictures and other files that you or a program uploaded are listed here.</p>
            </EmptyState>
          ) : (
            <>
              <ul class="plain-list asset-list">
                {[...assets, ...more.value].map((asset) => (
                  <li key={asset.id}>
                    <span class="asset-thumb">
                      <Thumb assetId={asset.id} type={asset.content_type} alt="" width={64} />
                    </span>
                    <span class="asset-name">
                      <Words text={asset.name} />
                      <span class="dim">
                        {asset.content_type} · {formatBytes(asset.size_bytes)} · <Ago at={asset.created_at} />
                        {asset.used_by > 0 && ` · used by ${plural(asset.used_by, 'job')}`}
                      </span>
                    </span>
                    <Id id={asset.id} label="asset id" />
                    <a
                      class="icon-button"
                      href={downloadUrl(asset.id)}
                      download={asset.name}
                      aria-label={`Download ${toMarkedText(asset.name)}`}
                    >
                      <Icon name="down" />
                    </a>
                    <button
                      type="button"
                      class="icon-button"
                      aria-label={`Remove ${toMarkedText(asset.name)}`}
                      onClick={() => void remove(asset)}
                    >
                      <Icon name="cross" />
                    </button>
                  </li>
                ))}
              </ul>
              {cursor.value !== null && (
                <button type="button" class="button" onClick={() => void loadMore()}>
                  More
                </button>
              )}
            </>
          )
        }
      </Loaded>
    </section>
  )
}
