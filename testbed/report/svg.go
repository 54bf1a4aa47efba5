package report

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/image/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// drawing is one finished SVG without its outer element. Its classes are those
// of the sheet that made it.
type drawing struct {
	w, h  vg.Length
	label string // for those who do not see it
	body  string
}

// sheet makes drawings and collects their styles: the same style has the same
// class in all of them, so that a page of a thousand drawings says it once.
type sheet struct {
	classes map[string]string // by what vgsvg wrote
	rules   strings.Builder
	vars    map[string]string     // variable by the hex of its ink
	faces   map[string]text.Style // of the classes of texts

	attribute, words *regexp.Regexp
}

func newSheet() *sheet {
	s := &sheet{
		classes: map[string]string{}, vars: map[string]string{}, faces: map[string]text.Style{},
		attribute: regexp.MustCompile(`\s+(style|d|x|y)="([^"]*)"`),
		words:     regexp.MustCompile(`<text [^>]*class="([^"]*)"[^>]*>([^<]*)</text>`),
	}
	for i, h := range palette() {
		s.vars[ink(i).hex()] = "var(--" + h.name + ")"
	}
	return s
}

// draw lets paint fill a canvas of w x h points and makes it a drawing.
func (s *sheet) draw(w, h vg.Length, label string, paint func(draw.Canvas)) (drawing, error) {
	c := vgsvg.New(w, h)
	paint(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return drawing{}, fmt.Errorf("report: write svg: %w", err)
	}
	body, err := s.shrink(b.String())
	if err != nil {
		return drawing{}, err
	}
	return drawing{w: w, h: h, label: clean(label, 200), body: body}, nil
}

// shrink drops the outer element, says styles by classes and coordinates to a
// tenth of a point. Quotes in texts are escaped by vgsvg, so nothing in a text
// looks like an attribute.
func (s *sheet) shrink(svg string) (string, error) {
	from, to := strings.Index(svg, "<g "), strings.LastIndex(svg, "</svg>")
	if from < 0 || to < from {
		return "", fmt.Errorf("report: vgsvg wrote no group")
	}
	var fault error
	out := s.attribute.ReplaceAllStringFunc(svg[from:to], func(a string) string {
		m := s.attribute.FindStringSubmatch(a)
		name, value := m[1], ""
		var err error
		switch name {
		case "style":
			name = "class"
			value, err = s.class(m[2])
		case "d":
			value, err = shortPath(m[2])
		default:
			var v float64
			v, err = strconv.ParseFloat(m[2], 64)
			value = tenths(round(v))
		}
		if err != nil {
			fault = err
		}
		return fmt.Sprintf(` %s="%s"`, name, value)
	})
	if fault != nil {
		return "", fault
	}
	return s.fixWidths(strings.NewReplacer(" />", "/>", "\n", "").Replace(out)), nil
}

// fixWidths says of every text of some length how wide it was laid out, so that
// it keeps its place also in a font of other metrics than ours.
func (s *sheet) fixWidths(svg string) string {
	return s.words.ReplaceAllStringFunc(svg, func(t string) string {
		m := s.words.FindStringSubmatch(t)
		said := html.UnescapeString(m[2])
		face, ok := s.faces[m[1]]
		if !ok || utf8.RuneCountInString(said) < 4 {
			return t
		}
		w := tenths(round(face.Width(said).Points()))
		return strings.Replace(t, ">", ` textLength="`+w+`" lengthAdjust="spacingAndGlyphs">`, 1)
	})
}

// class returns the class of a style as vgsvg writes it.
func (s *sheet) class(style string) (string, error) {
	if name, ok := s.classes[style]; ok {
		return name, nil
	}
	var rule []string
	var face text.Style
	for _, part := range strings.Split(style, ";") {
		key, value, _ := strings.Cut(part, ":")
		switch key {
		case "font-family", "font-variant", "font-style":
			continue // the page's own, with the metrics that were laid out with
		case "font-size":
			size, err := strconv.ParseFloat(strings.TrimSuffix(value, "px"), 64)
			if err != nil {
				return "", fmt.Errorf("report: font size: %w", err)
			}
			face.Font.Size = vg.Points(size)
		case "font-weight":
			if value == "normal" {
				continue
			}
			face.Font.Weight = font.WeightBold
		case "fill", "stroke":
			if value != "none" {
				name, ok := s.vars[value]
				if !ok {
					return "", fmt.Errorf("report: colour %q is no ink", value)
				}
				value = name
			}
		}
		rule = append(rule, key+":"+value)
	}
	name := fmt.Sprintf("g%d", len(s.classes))
	s.classes[style] = name
	if face.Font.Size > 0 {
		weight := face.Font.Weight
		face = letters(face.Font.Size, inkText, text.XLeft, text.YTop)
		face.Font.Weight = weight
		s.faces[name] = face
	}
	fmt.Fprintf(&s.rules, ".%s{%s}\n", name, strings.Join(rule, ";"))
	return name, nil
}

// inline is the drawing as an element of a page; class says which screens it is
// for.
func (d drawing) inline(class string) string {
	return fmt.Sprintf(`<svg class="p %s" viewBox="0 0 %g %g" role="img" aria-label="%s">%s</svg>`,
		class, d.w.Points(), d.h.Points(), html.EscapeString(d.label), d.body)
}

// file is the drawing as a file of its own.
func (s *sheet) file(d drawing) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="-8 -8 %[1]g %[2]g" role="img" aria-label="%s">
<style>
%stext{%s}
%s</style>
<rect x="-8" y="-8" width="100%%" height="100%%" fill="var(--panel)"/>
%s</svg>
`, d.w.Points()+16, d.h.Points()+16, html.EscapeString(d.label), schemes(), fontFamily, s.rules.String(), d.body)
}

// Text is laid out with the metrics of Liberation Sans; the others have the same.
const fontFamily = `font-family:"Liberation Sans",Arimo,Arial,Helvetica,sans-serif`

// round gives tenths of a point. What is no number is drawn at 0.
func round(v float64) int {
	v *= 10
	switch {
	case !(v > -1e7 && v < 1e7):
		return 0
	case v < 0:
		return int(v - 0.5)
	}
	return int(v + 0.5)
}

// tenths writes n/10 without what SVG can do without.
func tenths(n int) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	switch whole, rest := n/10, n%10; {
	case rest == 0:
		return sign + strconv.Itoa(whole)
	case whole == 0:
		return sign + "." + strconv.Itoa(rest)
	default:
		return sign + strconv.Itoa(whole) + "." + strconv.Itoa(rest)
	}
}
