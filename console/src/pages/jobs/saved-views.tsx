/** Filters of the list of jobs that were saved under a name, and this one to save. */
import { useState } from 'preact/hooks'
import { describeFilter, isEmptyFilter, type JobFilter, writeFilter } from '../../api/filter.ts'
import { listViews, removeView, saveView, type View } from '../../api/search.ts'
import { Icon } from '../../components/icon.tsx'
import { Dialog } from '../../components/overlay/dialog.tsx'
import { Menu } from '../../components/overlay/menu.tsx'
import { showToast, Words } from '../../components/text.tsx'
import { hrefOf } from '../../routes.ts'
import { tell } from '../../state/deeds.ts'
import { useResource } from '../../state/resource.ts'
import { toMarkedText } from '../../text/marks.ts'

export function SavedViews({ filter }: { readonly filter: JobFilter }) {
  const [open, setOpen] = useState<'save' | 'remove' | null>(null)
  const resource = useResource('views', listViews)
  const views = resource.data.value?.views ?? []
  const close = () => setOpen(null)
  const items = [
    ...views.map(({ name, query }) => ({ label: toMarkedText(name), href: hrefOf(`/jobs?${query}`) })),
    ...(isEmptyFilter(filter) ? [] : [{ label: 'Save this view…', onChoose: () => setOpen('save') }]),
    ...(views.length === 0 ? [] : [{ label: 'Remove a view…', onChoose: () => setOpen('remove') }]),
  ]
  if (items.length === 0) return null
  return (
    <>
      <Menu label="Saved views" items={items} buttonClass="button small">
        Views
      </Menu>
      {open === 'save' && <SaveView filter={filter} onClose={close} onSaved={resource.reload} />}
      {open === 'remove' && <RemoveView views={views} onClose={close} onRemoved={resource.reload} />}
    </>
  )
}

interface SaveViewProps {
  readonly filter: JobFilter
  readonly onClose: () => void
  readonly onSaved: () => void
}

function SaveView({ filter, onClose, onSaved }: SaveViewProps) {
  const [name, setName] = useState('')
  async function save(event: Event): Promise<void> {
    event.preventDefault()
    const done = await tell(async () => {
      await saveView(name.trim(), writeFilter(filter).toString())
      return true
    })
    if (done === null) return
    onSaved()
    onClose()
    showToast('Saved under Views.')
  }
  return (
    <Dialog title="Save this view" onClose={onClose}>
      <form class="stack" onSubmit={(event) => void save(event)}>
        <p class="dim">
          <Words text={describeFilter(filter)} />
        </p>
        <label class="stack">
          Name
          <input
            type="text"
            required
            maxLength={80}
            value={name}
            autoFocus
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <div class="dialog-deeds">
          <button type="submit" class="button primary">
            Save
          </button>
        </div>
      </form>
    </Dialog>
  )
}

interface RemoveViewProps {
  readonly views: readonly View[]
  readonly onClose: () => void
  readonly onRemoved: () => void
}

function RemoveView({ views, onClose, onRemoved }: RemoveViewProps) {
  async function remove(name: string): Promise<void> {
    await tell(async () => {
      await removeView(name)
      onRemoved()
      if (views.length === 1) onClose()
    })
  }
  return (
    <Dialog title="Saved views" onClose={onClose}>
      <ul class="plain-list">
        {views.map(({ name }) => (
          <li key={name}>
            <Words text={name} />
            <button
              type="button"
              class="icon-button"
              aria-label={`Remove ${toMarkedText(name)}`}
              onClick={() => void remove(name)}
            >
              <Icon name="cross" />
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  )
}
