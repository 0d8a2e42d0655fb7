/** Choices of this browser, signing out, and what this service is. */
import type { Signal } from '@preact/signals'
import { KeyValue } from '../../components/text.tsx'
import { BASE, BUILD } from '../../routes.ts'
import { density, shortcuts, theme, zone } from '../../state/preferences.ts'
import { session, signOut } from '../../state/session.ts'

interface ChoiceProps<Word extends string> {
  readonly name: string
  readonly label: string
  readonly chosen: Signal<Word>
  readonly words: Readonly<Record<Word, string>>
}

function Choice<Word extends string>({ name, label, chosen, words }: ChoiceProps<Word>) {
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      {(Object.entries(words) as [Word, string][]).map(([word, text]) => (
        <label key={word}>
          <input
            type="radio"
            name={name}
            checked={chosen.value === word}
            onChange={() => {
              chosen.value = word
            }}
          />
          {text}
        </label>
      ))}
    </fieldset>
  )
}

export function SettingsPage() {
  const { value: current } = session
  return (
    <section class="page">
      <h1>Settings</h1>
      <Choice
        name="theme"
        label="Theme"
        chosen={theme}
        words={{ auto: 'As the system', light: 'Light', dark: 'Dark' }}
      />
      <Choice name="density" label="Rows" chosen={density} words={{ roomy: 'Roomy', dense: 'Dense' }} />
      <Choice name="zone" label="Times" chosen={zone} words={{ local: 'Of this browser', UTC: 'UTC' }} />
      <Choice
        name="shortcuts"
        label="Shortcuts of a single letter"
        chosen={shortcuts}
        words={{ on: 'On', off: 'Off' }}
      />
      {current?.needs_credential === true && (
        <div class="row">
          <button type="button" class="button" onClick={() => void signOut()}>
            Sign out
          </button>
          <button type="button" class="button" onClick={() => void signOut({ everywhere: true })}>
            Sign out everywhere
          </button>
        </div>
      )}
      <h2>About</h2>
      <KeyValue
        pairs={[
          ['Atelier', current?.version],
          ['Kind', current?.kind],
          ['Page', <code key="build">{BUILD}</code>],
          [
            'API',
            <a key="docs" href={`${BASE}/docs`}>
              Reference
            </a>,
          ],
        ]}
      />
    </section>
  )
}
