/** What the job made, by the node that made it; those that were saved come first. While it runs, what it looks like so far. */
import { useSignal } from '@preact/signals'
import type { JobDetail, Output } from '../../api/job-detail.ts'
import { isEnded } from '../../api/summary.ts'
import { Icon } from '../../components/icon.tsx'
import { downloadUrl, kindOf, Media } from '../../components/media/media.tsx'
import { Dialog } from '../../components/overlay/dialog.tsx'
import { Words } from '../../components/text.tsx'
import { Boundary, RawJson } from '../../lazy.tsx'
import { formatBytes } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'

interface OutputGroup {
  readonly key: string
  readonly title: string
  readonly outputs: readonly Output[]
}

function groupOutputs(outputs: readonly Output[]): readonly OutputGroup[] {
  const groups = new Map<string, Output[]>()
  const ordered = outputs.toSorted((a, b) => Number(b.is_saved) - Number(a.is_saved))
  for (const output of ordered) groups.set(output.node_id, [...(groups.get(output.node_id) ?? []), output])
  return [...groups].map(([node, list]) => ({ key: node, title: list[0].node_title ?? `node ${node}`, outputs: list }))
}

export function ResultTab({ detail, preview }: { readonly detail: JobDetail; readonly preview: string | null }) {
  const shown = useSignal<Output | null>(null)
  const { outputs_list: outputs, status } = detail
  const groups = groupOutputs(outputs)
  return (
    <div class="results">
      {!isEnded(status) && status !== 'queued' && (
        <figure class="live-preview">
          {preview === null ? (
            <div class="live-preview-none dim">No preview yet</div>
          ) : (
            <img src={preview} alt="What it looks like so far" />
          )}
        </figure>
      )}
      {groups.map(({ key, title, outputs: list }) => (
        <section key={key} aria-label={toMarkedText(title)}>
          <h2>
            <Words text={title} /> {!list[0].is_saved && <span class="dim">preview, not saved</span>}
          </h2>
          <ul class="result-list">
            {list.map((output) => (
              <li key={output.asset_id}>
                <Boundary mark={output.asset_id} instead={() => <RawJson value={output} />}>
                  {kindOf(output.content_type) === 'image' ? (
                    <button
                      type="button"
                      class="result-open"
                      aria-label={`Enlarge ${toMarkedText(output.name)}`}
                      onClick={() => {
                        shown.value = output
                      }}
                    >
                      <Media item={output} />
                    </button>
                  ) : (
                    <Media item={output} />
                  )}
                  <p class="result-line dim">
                    <span class="result-name">
                      <Words text={output.name} />
                    </span>
                    <span class="number">{formatBytes(output.size_bytes)}</span>
                    <a
                      class="icon-button"
                      href={downloadUrl(output.asset_id)}
                      download={toMarkedText(output.name)}
                      aria-label={`Download ${toMarkedText(output.name)}`}
                      title="Download"
                    >
                      <Icon name="down" />
                    </a>
                  </p>
                </Boundary>
              </li>
            ))}
          </ul>
        </section>
      ))}
      {outputs.length === 0 && isEnded(status) && (
        <p class="dim">
          {status === 'succeeded' ? 'This job made no outputs.' : 'This job ended before it made an output.'}
        </p>
      )}
      {outputs.length === 0 && status === 'queued' && <p class="dim">What it makes will be here.</p>}
      {shown.value !== null && (
        <Dialog
          title={toMarkedText(shown.value.name)}
          size="large"
          onClose={() => {
            shown.value = null
          }}
        >
          <img class="enlarged" src={shown.value.url} alt={toMarkedText(shown.value.name)} />
        </Dialog>
      )}
    </div>
  )
}
