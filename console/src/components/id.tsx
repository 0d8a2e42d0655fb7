/** An id: its beginning and end, the whole of it to copy. */
import { CopyButton } from './copy-button.tsx'

export function shortId(id: string): string {
  return id.length <= 13 ? id : `${id.slice(0, 8)}…${id.slice(-4)}`
}

export function Id({ id, label = 'id' }: { readonly id: string; readonly label?: string }) {
  return (
    <span class="id">
      <code title={id}>{shortId(id)}</code>
      <CopyButton text={id} label={`Copy ${label}`} />
    </span>
  )
}
