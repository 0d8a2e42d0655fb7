/** Above a list: which state to show, and a button that asks for the list again. */
import { Icon } from '../icon.tsx'
import { FilterLinks } from './page-tabs.tsx'

interface StateFilterProps {
  /** The word for each state; '' is every state. */
  readonly states: Readonly<Record<string, string>>
  readonly state: string
  readonly addressOf: (state: string) => string
  readonly onReload: () => void
}

export function StateFilter({ states, state, addressOf, onReload }: StateFilterProps) {
  return (
    <div class="filter-bar">
      <FilterLinks
        label="State"
        places={Object.entries(states).map(([value, word]) => [addressOf(value), word])}
        here={addressOf(state)}
      />
      <button type="button" class="button small" onClick={onReload}>
        <Icon name="again" /> Ask again
      </button>
    </div>
  )
}
