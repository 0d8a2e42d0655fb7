/** Files that were uploaded: what they are, how large, how many jobs use them. */
import { type AssetRow, listAssets, removeAsset, uploadFile } from '../../api/assets.ts'
import { ApiError } from '../../api/client.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { Ago } from '../../components/figures.tsx'
import { FileDrop } from '../../components/files/file-drop.tsx'
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
import { formatBytes } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'

const PAGE = 100

export function AssetsPage() {
  const resource = useResource('assets', (signal) => listAssets(PAGE, signal))
  async function tell(deed: () => Promise<unknown>): Promise<void> {
    try {
      await deed()
      resource.reload()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      showToast(error.message)
    }
  }
  async function remove(asset: AssetRow): Promise<void> {
    const isMeant = await confirm({
      title: 'Remove this file?',
      text: 'Jobs that used it keep what they made; running them again needs the file.',
      deed: 'Remove',
      isDangerous: true,
    })
    if (isMeant) await tell(() => removeAsset(asset.asset_id))
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
        {({ assets }) =>
          assets.length === 0 ? (
            <EmptyState title="No files yet">
              <p class="dim">Pictures and other files that you or a program uploaded are listed here.</p>
            </EmptyState>
          ) : (
            <ul class="plain-list asset-list">
              {assets.map((asset) => (
                <li key={asset.asset_id}>
                  <span class="asset-thumb">
                    <Thumb assetId={asset.asset_id} type={asset.content_type} alt="" width={64} />
                  </span>
                  <span class="asset-name">
                    <Words text={asset.name} />
                    <span class="dim">
                      {asset.content_type} · {formatBytes(asset.size_bytes)} · <Ago at={asset.created_at} />
                    </span>
                  </span>
                  <Id id={asset.asset_id} label="asset id" />
                  <a
                    class="icon-button"
                    href={downloadUrl(asset.asset_id)}
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
          )
        }
      </Loaded>
    </section>
  )
}
