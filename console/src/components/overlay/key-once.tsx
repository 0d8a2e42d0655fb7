/** A secret that is shown once: nothing keeps it. */
import { CopyButton } from '../copy-button.tsx'
import { Dialog } from './dialog.tsx'

export function KeyOnce({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) {
  return (
    <Dialog title="The new key" onClose={onClose}>
      <p>Copy it now: it is shown this once and kept nowhere.</p>
      <p class="key-once">
        <code>{secret}</code>
      </p>
      <div class="dialog-deeds">
        <CopyButton text={secret} label="Copy the key" word="Copy" />
        <button type="button" class="button primary" onClick={onClose}>
          I have it
        </button>
      </div>
    </Dialog>
  )
}
