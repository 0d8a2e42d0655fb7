/** Keeps the form, as it is filled in, under a name: it can then be opened by its address. */
import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { listForms, saveForm } from '../../api/forms.ts'
import { confirm } from '../../components/overlay/confirm.tsx'
import { showToast } from '../../components/overlay/toast.tsx'
import { toMarkedText } from '../../text/marks.ts'
import { changedText } from './run-state.ts'

export function SaveForm({ name: known }: { readonly name: string }) {
  const field = useRef<HTMLInputElement>(null)
  const mine = useSignal(known)
  async function save(): Promise<void> {
    const name = field.current?.value.trim() ?? ''
    if (name === '') return field.current?.focus()
    try {
      const isOther = name !== mine.value && (await listForms()).forms.some((form) => form.name === name)
      if (isOther && !(await mayReplace(name))) return
      await saveForm(name, { workflow_text: changedText() })
      mine.value = name
      showToast(`Saved as ${name}.`)
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      showToast(thrown.message)
    }
  }
  return (
    <div class="save-form">
      <input
        ref={field}
        type="text"
        class="save-name"
        placeholder="name"
        aria-label="Name to save as"
        maxLength={80}
        defaultValue={known}
        onKeyDown={(event) => {
          if (event.key === 'Enter') void save()
        }}
      />
      <button type="button" class="button" onClick={() => void save()}>
        Save
      </button>
    </div>
  )
}

function mayReplace(name: string): Promise<boolean> {
  return confirm({
    title: `Replace “${toMarkedText(name)}”?`,
    text: 'There is a saved form of this name. What it holds is lost.',
    deed: 'Replace',
    isDangerous: true,
  })
}
