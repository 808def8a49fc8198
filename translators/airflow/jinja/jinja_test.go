package jinja_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagbridge/dagbridge/translators/airflow/jinja"
)

// What templates render to is compared with Jinja itself in integration/templates. Here is what Jinja does not have.
func renderer() *jinja.Renderer {
	return jinja.NewRenderer(map[string]jinja.Value{
		"ds":   "2026-03-09",
		"day":  jinja.Time{Time: time.Date(2026, 3, 9, 0, 0, 0, 0, time.UTC)},
		"var":  jinja.Refused("is in Airflow's database"),
		"late": jinja.Lazy(func() (jinja.Value, error) { return "asked", nil }),
		"pull": jinja.Func(func(jinja.Args) (jinja.Value, error) { return jinja.Pull{Task: "a", Path: jinja.List{"key"}}, nil }),
	})
}

func TestPulls(t *testing.T) {
	t.Parallel()
	text, err := renderer().Render("x {{ ds }} {{ pull()['n'][0].m }}{{ pull() | tojson }} {% set p = pull() %}{{ p }} {{ pull() | default('x') }} y")
	require.NoError(t, err)
	pull := func(json bool, path ...jinja.Value) jinja.Part {
		return jinja.Part{Pull: &jinja.Pull{Task: "a", Path: append(jinja.List{"key"}, path...), JSON: json}}
	}
	require.Equal(t, jinja.Text{
		{Text: "x 2026-03-09 "}, pull(false, "n", int64(0), "m"), pull(true), {Text: " "}, pull(false), {Text: " "}, pull(false), {Text: " y"},
	}, text)
	_, known := text.String()
	require.False(t, known)
	for _, computed := range []string{
		"{{ pull() ~ 'x' }}", "{{ pull() + 1 }}", "{% if pull() %}{% endif %}", "{% for x in pull() %}{% endfor %}", "{{ pull() | upper }}", "{{ pull() == 1 }}",
		"{{ 'x'.replace('x', pull()) }}", "{{ pull() | default('x', true) }}", "{{ not pull() }}", "{{ [pull()] | join }}", "{{ pull() is none }}", "{{ {'a': 1}[pull()] }}",
	} {
		_, err := renderer().Render(computed)
		require.ErrorContains(t, err, "is known only when this task runs", computed)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"a\nb {{ var.value.x }}":           "line 2: var is in Airflow's database",
		"{{ nothing }}":                    "nothing is undefined",
		"{{ day.in_timezone('x') }}":       "in_timezone of a date is not supported",
		"{{ ds | filesizeformat }}":        "the filter filesizeformat is not supported",
		"{% macro x() %}{% endmacro %}":    "{% macro %} is not supported",
		"{{ 2 ** 3 }}":                     "** is not supported",
		"{{ day.strftime('%q') }}":         "%q in a format is not supported",
		"{% for i in range(100001) %}":     "is missing",
		"{{ range(100001) }}":              "has more than 100000 elements",
		"{{ 9223372036854775807 + 1 }}":    "a number is too large",
		"{{ day.add(years=9000) }}":        "outside the years 1 to 9999",
		"{{ ds.x }}":                       "x of text is not supported",
		"{{ 1 / 0 }}":                      "a division by zero",
		"{{ [1, 2][1:2:1] }}":              "slices with a step are not supported",
		"{{ 'a' if }}":                     "is not expected here",
		"{{ \"\xff\" }}":                   "is not UTF-8",
		"{% if ds %}{% elif %}{% endif %}": "%} is not expected here",
	} {
		_, err := renderer().Render(template)
		require.ErrorContains(t, err, want, template)
	}
	text, err := renderer().Render("{{ late }}")
	require.NoError(t, err)
	require.Equal(t, jinja.Literal("asked"), text)
}

// FuzzRender: whatever comes, it is rendered or refused.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		"{{ ds }}", "{% for a, b in {'x': 1}.items() %}{{ loop.index }}{% else %}{% endfor %}", "{{ ds[1:-1] | replace('-', '') ~ day.add(days=1) }}", "{{ pull()['x'][0] }}",
		"{%- raw -%}{{ }}{%- endraw -%}", "{# x #}", "{{ 'a\\x41' * 3 if 1 < 2 <= 3 and not ds is defined else [1, 2.5, none, (true,)] }}", "{{ day.strftime('%Y%j') }}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, template string) {
		text, err := renderer().Render(template)
		if err != nil {
			require.Nil(t, text)
		}
	})
}
