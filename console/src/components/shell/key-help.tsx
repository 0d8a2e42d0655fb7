import { KEY_ROWS } from '../../keys/key-map.ts'
import { isHelpOpen } from '../../state/palette.ts'
import { Dialog } from '../overlay/dialog.tsx'

export function KeyHelp() {
  return (
    <Dialog
      title="Keys"
      onClose={() => {
        isHelpOpen.value = false
      }}
    >
      <table class="key-table">
        <tbody>
          {KEY_ROWS.map(({ keys, deed }) => (
            <tr key={keys}>
              <th scope="row">
                <kbd>{keys}</kbd>
              </th>
              <td>{deed}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="dim">Keys of a single letter can be switched off under Settings. They never fire inside a field.</p>
    </Dialog>
  )
}
